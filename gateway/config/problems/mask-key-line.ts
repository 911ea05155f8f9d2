import { closestName } from './closest-name.ts';

/**
 * Shows of a line about keys only what is known to be harmless: structure, names of fields, and the values of those
 * fields that hold no secret. All else, comments included, becomes as many asterisks, so that a caret below the line
 * still points right. It looks at the text alone, since a line that is no valid YAML has no tree, and a secret without
 * our prefix has no shape to know it by.
 */
export function maskKeyLine(line: string, fieldNames: readonly string[]): string {
  return line.replace(piece, (text: string, harmless: string | undefined, name: string | undefined) => {
    const isShown = harmless !== undefined || (name !== undefined && isFieldName(name, fieldNames));
    return isShown ? text : '*'.repeat(text.length);
  });
}

/** Fields whose values are shown, as long as they have the form of such a value. */
const harmlessFields = [
  // An id is public by nature: it is on every access line and in what is forwarded. A secret of ours is no id.
  field('id|plan', String.raw`(?!tg_)[\w.:@+-]+`),
  field('per(?:Second|Minute|Hour|Day|Month)', String.raw`[-+.\d]+`),
  field('disabled', 'true|false'),
  field('expires', String.raw`[\dTZ:.+-]+`),
  field('keys', String.raw`[\w./-]+\.ya?ml`),
];

/** Brackets, the marks of entries, keys and comments, and variables, which stand there by name. */
const structure = [String.raw`[\s[\]{},]+`, String.raw`[-?#](?=\s|$)`, String.raw`\$\{\w+\}`];

/** One piece of a line after the other: what is harmless, the name of a field, quoted text, or any other word. */
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

/** A slip of the pen is shown, since it is what the problem is about; a secret resembles no field. */
function isFieldName(name: string, fieldNames: readonly string[]): boolean {
  return closestName(name, fieldNames) !== undefined;
}
