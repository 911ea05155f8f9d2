import { closestName } from '../../shared/schema/closest-name.ts';

/**
 * Masks a line of a setting that may have secrets, such as `keys` or `redis`, except its structure, field names, and the values of harmless
 * fields. Every other character becomes an asterisk, so that a caret below the line still points to the right place.
 *
 * This works on text, because invalid YAML cannot be parsed, and with an allowlist, because a secret without the prefix `tg_` cannot be
 * recognised.
 */
export function maskKeyLine(line: string, fieldNames: readonly string[]): string {
  return line.replace(piece, (text: string, harmless: string | undefined, name: string | undefined) => {
    const isShown = harmless !== undefined || (name !== undefined && isFieldName(name, fieldNames));
    return isShown ? text : '*'.repeat(text.length);
  });
}

/** Shows values that have the expected form. */
const harmlessFields = [
  // Access logs and forwarded requests contain ids. A secret in place of an id stays masked.
  field('id|plan', String.raw`(?!tg[al]?_)[\w.:@+-]+`),
  field('per(?:Second|Minute|Hour|Day|Month)', String.raw`[-+.\d]+`),
  field('disabled|directory', 'true|false'),
  field('expires|created', String.raw`[\dTZ:.+-]+`),
  field('keys|file', String.raw`[\w./-]+\.ya?ml`),
  field('port', String.raw`\d{1,5}`),
  field('ca|cert|key', String.raw`[\w./-]+\.(?:pem|crt|key)`),
  field('may', 'read|write'),
  field('onFailure', 'local|refuse'),
  // The rest of a webhook's URL often contains a token. With an `@`, the origin may be a user and a password.
  String.raw`\burl["']?\s*:\s*["']?https?:\/\/[\w.-]+(?::\d+)?\/(?!.*@)`,
];

/** Brackets, the YAML indicators `-`, `?` and `#`, empty quotes, and the names of variables. */
const structure = [String.raw`[\s[\]{},]+`, String.raw`[-?#](?=\s|$)`, `""|''`, String.raw`\$\{\w+(?::-)?`];

/** Harmless text, a field name, quoted text, or any other word. */
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

/** A misspelt name is shown, because a problem may be about it. A secret never resembles a field name. */
function isFieldName(name: string, fieldNames: readonly string[]): boolean {
  return closestName(name, fieldNames) !== undefined;
}
