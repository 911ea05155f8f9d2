import { configSizes } from '../config-sizes.ts';

/** The value of an environment variable, or why there is none. */
export type Variable =
  | { readonly kind: 'set'; readonly value: string }
  | { readonly kind: 'unset' }
  | { readonly kind: 'unreadable'; readonly reason: string };

export type Substituted =
  | { readonly kind: 'filled'; readonly text: string }
  | { readonly kind: 'failed'; readonly reason: string };

const placeholder = /\$\{([A-Za-z_][A-Za-z0-9_]*)(?::-([^{}]*))?\}/g;

/**
 * Fills in `${NAME}` and `${NAME:-default}`. As in a shell, the default also replaces an empty value. Reasons name
 * variables and never show their values.
 */
export function substituteVariables(text: string, lookUp: (name: string) => Variable): Substituted {
  const reasons = new Set<string>();
  if (text.replace(placeholder, '').includes('${')) {
    reasons.add('`${` begins no substitution here; write `${NAME}` or `${NAME:-default}`');
  }
  const filled = text.replace(placeholder, (_, name: string, fallback: string | undefined) => {
    if (reasons.size >= configSizes.reasonsMax) return '';
    const variable = lookUp(name);
    if (variable.kind === 'set' && (variable.value !== '' || fallback === undefined)) return variable.value;
    if (variable.kind === 'unreadable') reasons.add(variable.reason);
    else if (fallback === undefined) {
      reasons.add(
        `the environment variable ${name} is not set; set it or ${name}_FILE, or write \`\${${name}:-default}\``,
      );
    }
    return fallback ?? '';
  });
  return reasons.size === 0
    ? { kind: 'filled', text: filled }
    : { kind: 'failed', reason: [...reasons].join('; ') };
}
