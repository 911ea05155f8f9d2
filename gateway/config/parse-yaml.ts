import { type Alias, isScalar, LineCounter, type Node, parseDocument, visit, type YAMLError } from 'yaml';
import { bounds } from '../bounds.ts';
import { type Place, type Problem, placeAt } from './problem.ts';
import type { FileKind } from './show-line.ts';
import type { Substituted } from './substitute-variables.ts';
import { offsetOf, type ParsedDocument, type YamlPart, type YamlPath } from './yaml-offset.ts';

/** A YAML document as plain data that still knows where each part stands. */
export interface YamlSource {
  readonly value: unknown;
  /** The place of a value, or of a field's name; of the nearest part around it when there is none. */
  placeOf(path: YamlPath, part?: YamlPart): Place;
}

export type ParsedYaml =
  | {
      readonly kind: 'parsed';
      readonly source: YamlSource;
      /** What is wrong though the rest can be used: duplicate fields, unset variables. */
      readonly problems: readonly Problem[];
    }
  | { readonly kind: 'invalid'; readonly problems: readonly Problem[] };

/** Makes a problem at an offset of the text. */
type ProblemAt = (offset: number, message: string) => Problem;

/**
 * Parses one YAML document. Positions are only worked out for problems: a file of 10,000 keys has none.
 *
 * @param substitute fills the `${…}` of a scalar, after parsing, so that a value can never add structure; absent,
 *   they stay as they are
 */
export function parseYaml(options: {
  readonly file: string;
  readonly kind: FileKind;
  readonly text: string;
  readonly substitute?: (text: string) => Substituted;
}): ParsedYaml {
  const { file, kind, text, substitute } = options;
  const lineCounter = new LineCounter();
  const document = parseDocument(text, {
    lineCounter,
    prettyErrors: false,
    stringKeys: true,
    // The library compares each field with all before it; `findDuplicates` does it in linear time.
    uniqueKeys: false,
  });

  const placeOf = (offset: number): Place => {
    const { line, col } = lineCounter.linePos(offset);
    // Before the first character of an empty text the counter answers line 0.
    if (line === 0) return placeAt({ file, kind, text, line: 1, column: 1, lineStart: 0 });
    return placeAt({ file, kind, text, line, column: col, lineStart: offset - col + 1 });
  };
  const problemAt: ProblemAt = (offset, message) => ({ ...placeOf(offset), message });

  const syntaxErrors = [...document.errors, ...document.warnings];
  if (syntaxErrors.length > 0) {
    return {
      kind: 'invalid',
      problems: syntaxProblems(syntaxErrors, { text, canFill: substitute !== undefined, problemAt }),
    };
  }

  const problems = findDuplicates(document, problemAt);
  if (substitute && text.includes('${')) problems.push(...fillVariables(document, substitute, problemAt));

  const plain = toPlain(document);
  if (plain.kind === 'failed') {
    return { kind: 'invalid', problems: [...problems, problemAt(plain.offset, plain.reason)] };
  }
  return {
    kind: 'parsed',
    problems,
    source: {
      value: plain.value,
      placeOf: (path, part = 'value') => placeOf(offsetOf(document, path, part)),
    },
  };
}

function syntaxProblems(
  errors: readonly YAMLError[],
  {
    text,
    canFill,
    problemAt,
  }: { readonly text: string; readonly canFill: boolean; readonly problemAt: ProblemAt },
): Problem[] {
  const problems: Problem[] = [];
  for (const error of errors.slice(0, bounds.configSyntaxErrorsMax)) {
    const [offset] = error.pos;
    if (canFill && text.slice(offset - 1, offset + 1) === '${') {
      problems.push(
        problemAt(offset - 1, 'inside `{ }` and `[ ]` a value with a variable needs quotes: `"${NAME}"`'),
      );
      // What the parser says from here on only follows from it.
      break;
    }
    problems.push(problemAt(visibleOffset(text, offset), syntaxMessage(error)));
  }
  return problems;
}

/** What is never closed is only missed at the end of the file, where no line shows it: the last text is what to look at. */
function visibleOffset(text: string, offset: number): number {
  const lineStart = text.lastIndexOf('\n', offset - 1) + 1;
  const isBlank = /^[^\S\n]*(\n|$)/.test(text.slice(lineStart));
  return isBlank ? text.slice(0, lineStart).trimEnd().length : offset;
}

/** What to write instead, where the library's own message does not say it. */
const syntaxAdvice: Partial<Record<YAMLError['code'], string>> = {
  TAB_AS_INDENT: 'indent with spaces, not with tabs',
  BAD_DIRECTIVE: 'a line may not begin with `%`',
  MULTIPLE_DOCS: 'a file holds one document; remove `---` and what follows',
  NON_STRING_KEY: 'a field name is plain text',
  RESOURCE_EXHAUSTION: 'it is nested too deeply',
  TAG_RESOLVE_FAILED: 'remove the `!` tag',
};

function syntaxMessage({ code, message }: YAMLError): string {
  // After a colon the library quotes the file, which may be a secret; a colon after a space is the indicator itself.
  const [sentence = ''] = message.split(/(?<! ):|\n/, 1);
  const detail = syntaxAdvice[code] ?? sentence.charAt(0).toLowerCase() + sentence.slice(1);
  return `this is not valid YAML: ${detail}`;
}

function findDuplicates(document: ParsedDocument, problemAt: ProblemAt): Problem[] {
  const problems: Problem[] = [];
  visit(document, {
    Map: (_, map) => {
      const firstOffsets = new Map<string, number>();
      for (const { key } of map.items) {
        if (!isScalar<string>(key) || problems.length > bounds.configProblemsMax) continue;
        const offset = offsetOfNode(key);
        const firstOffset = firstOffsets.get(key.value);
        if (firstOffset === undefined) {
          firstOffsets.set(key.value, offset);
        } else {
          const related = problemAt(firstOffset, 'the first one is here');
          problems.push({
            ...problemAt(offset, 'this field stands here twice; keep one'),
            related,
          });
        }
      }
    },
  });
  return problems;
}

function fillVariables(
  document: ParsedDocument,
  substitute: (text: string) => Substituted,
  problemAt: ProblemAt,
): Problem[] {
  const problems: Problem[] = [];
  visit(document, {
    Scalar: (position, scalar) => {
      if (problems.length > bounds.configProblemsMax) return visit.BREAK;
      if (position === 'key' || typeof scalar.value !== 'string' || !scalar.value.includes('${'))
        return undefined;
      const substituted = substitute(scalar.value);
      if (substituted.kind === 'failed') problems.push(problemAt(offsetOfNode(scalar), substituted.reason));
      else scalar.value = scalar.type === 'PLAIN' ? resolvePlain(substituted.text) : substituted.text;
    },
  });
  return problems;
}

/** A plain scalar is a number or a boolean when it looks like one, as if its text had stood in the file. */
function resolvePlain(text: string): string | number | boolean {
  if (/^[-+]?\d+(\.\d+)?$/.test(text)) return Number(text);
  if (text === 'true' || text === 'false') return text === 'true';
  return text;
}

type Plain =
  | { readonly kind: 'plain'; readonly value: unknown }
  | { readonly kind: 'failed'; readonly reason: string; readonly offset: number };

function toPlain(document: ParsedDocument): Plain {
  try {
    return { kind: 'plain', value: document.toJS({ maxAliasCount: bounds.configAliasesMax }) };
  } catch (error) {
    // The library throws a ReferenceError for an alias bomb or an unset anchor, and lets a stack overflow through.
    if (error instanceof ReferenceError) {
      const reason = 'the aliases (`*name`) stand for too many values or for none; write the values out';
      return { kind: 'failed', reason, offset: offsetOfLastAlias(document) };
    }
    return { kind: 'failed', reason: 'this is nested too deeply', offset: 0 };
  }
}

function offsetOfLastAlias(document: ParsedDocument): number {
  let last: Alias | undefined;
  visit(document, {
    Alias: (_, alias) => {
      last = alias;
    },
  });
  return last === undefined ? 0 : offsetOfNode(last);
}

function offsetOfNode(node: Node): number {
  return node.range?.[0] ?? 0;
}
