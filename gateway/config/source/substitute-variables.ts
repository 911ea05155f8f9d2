import { configSizes } from '../config-sizes.ts';

/** The value of an environment variable, or why there is none. */
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
 * Whether a text, written into a configuration, would not be read as it is: whoever chooses the name of a key would have a
 * secret of the environment in it, or leave a file that no gateway can load. There is no other way to write such a text.
 */
export function isFilledIn(text: string | undefined): boolean {
  return text?.includes(placeholderStart) ?? false;
}

/**
 * Fills in `${NAME}` and `${NAME:-default}`. As in a shell, the default also replaces an empty value. Reasons name
 * variables and never show their values.
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
