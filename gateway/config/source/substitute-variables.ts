import { configSizes } from '../config-sizes.ts';

export type Variable =
  | { readonly kind: 'set'; readonly value: string }
  | { readonly kind: 'unset' }
  | { readonly kind: 'unreadable'; readonly file: string; readonly reason: string };

export type Substituted =
  | { readonly kind: 'filled'; readonly text: string }
  /** `files`: the secret files that could not be read. */
  | { readonly kind: 'failed'; readonly reason: string; readonly files?: readonly string[] };

const placeholder = /\$\{([A-Za-z_][A-Za-z0-9_]*)(?::-([^{}]*))?\}/g;

const placeholderStart = '${';

/**
 * A text with variables must not be written to a configuration: a key's name could then contain a secret from the environment, or make the
 * file invalid. The syntax has no escape for `${`.
 */
export function isFilledIn(text: string | undefined): boolean {
  return text?.includes(placeholderStart) ?? false;
}

/**
 * `${NAME}` and `${NAME:-default}`. As in a shell, the default also replaces an empty value. Reasons for a failure contain the names of
 * variables and never their values.
 */
export function substituteVariables(text: string, lookUp: (name: string) => Variable): Substituted {
  const reasons = new Set<string>();
  const files: string[] = [];
  if (isFilledIn(text.replace(placeholder, ''))) {
    reasons.add('`${` begins no substitution here; write `${NAME}` or `${NAME:-default}`');
  }
  const filled = text.replace(placeholder, (_, name: string, fallback: string | undefined) => {
    if (reasons.size >= configSizes.reasonsMax) return '';
    const variable = lookUp(name);
    if (variable.kind === 'set' && (variable.value !== '' || fallback === undefined)) return variable.value;
    if (variable.kind === 'unreadable') {
      reasons.add(variable.reason);
      files.push(variable.file);
    } else if (fallback === undefined) {
      reasons.add(
        `the environment variable ${name} is not set; set it or ${name}_FILE, or write \`\${${name}:-default}\``,
      );
    }
    return fallback ?? '';
  });
  return reasons.size === 0
    ? { kind: 'filled', text: filled }
    : { kind: 'failed', reason: [...reasons].join('; '), ...(files.length > 0 && { files }) };
}
