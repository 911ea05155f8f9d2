import { closestName } from '../../shared/schema/closest-name.ts';

/**
 * Masks a line of a setting that may have secrets, such as `keys` or `redis`. The result shows only harmless parts: structure, field
 * names, and the values of fields without secrets. Every other character becomes an asterisk, so that a caret below the line still points
 * to the right place.
 *
 * The function works on text, because invalid YAML cannot be parsed. The function uses an allowlist, because a secret without
 * the prefix `tg_` cannot be recognised.
 */
export function maskKeyLine(line: string, fieldNames: readonly string[]): string {
  return line.replace(piece, (text: string, harmless: string | undefined, name: string | undefined) => {
    const isShown = harmless !== undefined || (name !== undefined && isFieldName(name, fieldNames));
    return isShown ? text : '*'.repeat(text.length);
  });
}

/** Fields whose values are shown, if the values have the expected form. */
const harmlessFields = [
  // An id is not secret, because access logs and forwarded requests contain it. A secret that is written in place of an id stays
  // masked.
  field('id|plan', String.raw`(?!tga?_)[\w.:@+-]+`),
  field('per(?:Second|Minute|Hour|Day|Month)', String.raw`[-+.\d]+`),
  field('disabled|directory', 'true|false'),
  field('expires|created', String.raw`[\dTZ:.+-]+`),
  field('keys|file', String.raw`[\w./-]+\.ya?ml`),
  field('port', String.raw`\d{1,5}`),
  field('ca|cert|key', String.raw`[\w./-]+\.(?:pem|crt|key)`),
  field('may', 'read|write'),
  field('onFailure', 'local|refuse'),
  // The origin of a webhook's URL. The rest of the URL often contains a token. With an `@`, the origin may be a user and a password.
  String.raw`\burl["']?\s*:\s*["']?https?:\/\/[\w.-]+(?::\d+)?\/(?!.*@)`,
];

/** Patterns of harmless text: brackets, the YAML indicators `-`, `?` and `#`, empty quotes, and the names of variables. */
const structure = [String.raw`[\s[\]{},]+`, String.raw`[-?#](?=\s|$)`, `""|''`, String.raw`\$\{\w+(?::-)?`];

/** Matches the next piece of a line: harmless text, a field name, quoted text, or any other word. */
const piece = new RegExp(
  [
    `(${[...harmlessFields, ...structure].join('|')})`,
    String.raw`["']?([\w-]+)["']?\s*:`,
    String.raw`"(?:[^"\\]|\\.)*"?`,
    `'[^']*'?`,
    String.raw`[^\s\]},]+(?:[\]},]+[^\s\]},]+)*`,
  ].join('|'),
  'g',
);

function field(names: string, value: string): string {
  return String.raw`["']?(?:${names})["']?\s*:\s*["']?(?:${value})["']?(?=[\s\]},]|$)`;
}

/**
 * Whether a word is a field name or resembles a field name. A misspelt name is shown, because a problem may be about this name.
 * A secret never resembles a field name.
 */
function isFieldName(name: string, fieldNames: readonly string[]): boolean {
  return closestName(name, fieldNames) !== undefined;
}
