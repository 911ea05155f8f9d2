import { closestName } from '../../shared/schema/closest-name.ts';

/**
 * Masks a line about keys, except for parts that are known to be harmless: structure, names of fields, and the values of
 * fields that hold no secret. Everything else, comments included, is replaced by as many asterisks, so that a caret below
 * the line still points at its place. It works on the text, since invalid YAML has no tree. It is an allowlist, since a
 * secret without the prefix `tg_` cannot be recognised.
 */
export function maskKeyLine(line: string, fieldNames: readonly string[]): string {
  return line.replace(piece, (text: string, harmless: string | undefined, name: string | undefined) => {
    const isShown = harmless !== undefined || (name !== undefined && isFieldName(name, fieldNames));
    return isShown ? text : '*'.repeat(text.length);
  });
}

/** Fields whose values are shown, as long as they have the form of such a value. */
const harmlessFields = [
  // An id is public: it is on every access line and in forwarded requests. A secret in its place stays masked.
  field('id|plan', String.raw`(?!tga?_)[\w.:@+-]+`),
  field('per(?:Second|Minute|Hour|Day|Month)', String.raw`[-+.\d]+`),
  field('disabled|directory', 'true|false'),
  field('expires|created', String.raw`[\dTZ:.+-]+`),
  field('keys|file', String.raw`[\w./-]+\.ya?ml`),
];

/** Brackets, the marks of list entries, keys and comments, and variables, of which only the name is written. */
const structure = [String.raw`[\s[\]{},]+`, String.raw`[-?#](?=\s|$)`, String.raw`\$\{\w+\}`];

/** The next piece of a line: harmless text, the name of a field, quoted text, or any other word. */
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

/** Also a misspelt name is shown, since the problem may be about it; a secret resembles no name of a field. */
function isFieldName(name: string, fieldNames: readonly string[]): boolean {
  return closestName(name, fieldNames) !== undefined;
}
