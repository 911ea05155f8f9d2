import { isPair, isScalar, Lexer, type Node, parseDocument, type Scalar, visit, type YAMLError } from 'yaml';
import { configSizes } from '../config-sizes.ts';
import { createTextPlaces, type Place, type Problem } from '../problems/problem.ts';
import { createProblemList, type ProblemList } from '../problems/problem-list.ts';
import type { FileKind } from '../problems/show-line.ts';
import { createJsonOffsetOf, parseJson } from './parse-json.ts';
import { parsePlainYaml } from './parse-plain-yaml.ts';
import { createPlainYamlOffsetOf } from './plain-yaml-offset.ts';
import type { Substituted } from './substitute-variables.ts';
import { createOffsetOf, type OffsetOf, type YamlPart, type YamlPath } from './yaml-offset.ts';
import { type ParsedDocument, toPlain } from './yaml-to-plain.ts';

/** A YAML document as plain data, with the line and column of each part. */
export interface YamlSource {
  readonly value: unknown;
  /** Returns the line and column of a value, or of a field's name. A missing part has the position of the nearest part around it. */
  placeOf(path: YamlPath, part?: YamlPart): Place;
  /** Returns the line number of a value. */
  lineOf(path: YamlPath): number;
}

export type ParsedYaml =
  | {
      readonly kind: 'parsed';
      readonly source: YamlSource;
      /** Faults that do not prevent reading the rest of the file: duplicate fields, reserved names, unset variables. */
      readonly problems: readonly Problem[];
    }
  | { readonly kind: 'invalid'; readonly problems: readonly Problem[] };

/** @param path the names of the fields around the text, without the indexes of lists */
type Substitute = (text: string, path: readonly unknown[]) => Substituted;

/** Makes a problem at an offset of the text. */
type ProblemAt = (offset: number, message: string) => Problem;

/**
 * Parses one YAML document. Faster parsers read an API document in JSON, and an API document in YAML without rare syntax. Line and column
 * numbers are computed only for problems.
 *
 * @param substitute fills in `${…}` in a scalar. `substitute` receives the scalar's path, and is called after parsing, so that a value
 *   cannot add YAML structure. Without `substitute`, `${…}` is ordinary text
 * @param tokensMax the maximum number of YAML tokens in the file
 */
export function parseYaml(options: {
  readonly file: string;
  readonly kind: FileKind;
  readonly text: string;
  readonly substitute?: Substitute;
  readonly tokensMax?: number;
}): ParsedYaml {
  const { file, kind, text, substitute, tokensMax = configSizes.tokensMax } = options;
  const { placeAt, lineAt } = createTextPlaces({ file, kind, text });
  const sourceOf = (value: unknown, offsetOf: OffsetOf): YamlSource => ({
    value,
    placeOf: (path, part = 'value') => placeAt(offsetOf(path, part)),
    lineOf: (path) => lineAt(offsetOf(path, 'value')),
  });
  const json = kind === 'api' ? parseJson(text, tokensMax) : undefined;
  if (json !== undefined) {
    return { kind: 'parsed', problems: [], source: sourceOf(json.value, createJsonOffsetOf(text)) };
  }
  // For most texts the length is enough to decide, because almost every token has at least one character.
  const mayExceed = text.length > tokensMax && tokensAtMost(text) > tokensMax;
  const plainYaml = kind === 'api' && !mayExceed ? parsePlainYaml(text) : undefined;
  if (plainYaml !== undefined) {
    return { kind: 'parsed', problems: [], source: sourceOf(plainYaml.value, createPlainYamlOffsetOf(text)) };
  }
  const problemAt: ProblemAt = (offset, message) => ({ ...placeAt(offset), message });

  const excess = mayExceed ? offsetOfToken(text, tokensMax) : undefined;
  if (excess !== undefined) {
    const message = `reading stops here: a file may have at most ${tokensMax} YAML tokens (words, punctuation, spaces, line breaks)`;
    return { kind: 'invalid', problems: [problemAt(excess, message)] };
  }

  const document = parseDocument(text, {
    prettyErrors: false,
    stringKeys: true,
    // The library's check for duplicate fields takes quadratic time; `addNameProblems` finds duplicates in linear time.
    uniqueKeys: false,
  });

  const syntaxErrors = [...document.errors, ...document.warnings];
  if (syntaxErrors.length > 0) {
    return {
      kind: 'invalid',
      problems: syntaxProblems(syntaxErrors, { text, canFill: substitute !== undefined, problemAt }),
    };
  }

  const names = createProblemList();
  addNameProblems(document, problemAt, names);
  const variables = createProblemList();
  if (substitute && text.includes('${'))
    fillVariables(document, { substitute, problemAt, problems: variables });
  const problems = [...names.problems, ...variables.problems];

  const plain = toPlain(document, configSizes.aliasedValuesMax);
  if (plain.kind === 'failed') {
    return { kind: 'invalid', problems: [...problems, problemAt(plain.offset, plain.reason)] };
  }
  const source = sourceOf(plain.value, createOffsetOf(document, plain.targets));
  return { kind: 'parsed', problems, source };
}

/**
 * Returns an upper bound of the number of tokens. In almost every file, this bound is at most `tokensMax`. A token never ends between two
 * letters or digits, nor between two spaces. An empty token, which stands for an empty scalar, occurs only beside one of the characters
 * `,`, `|` and `>`.
 */
function tokensAtMost(text: string): number {
  let tokens = 0;
  let before = 0;
  for (let at = 0; at < text.length; at++) {
    const code = text.charCodeAt(at);
    const isInside = code === space ? before === space : isWordCharacter(code) && isWordCharacter(before);
    if (!isInside) tokens += code === comma || code === pipe || code === greaterThan ? 2 : 1;
    before = code;
  }
  return tokens;
}

const space = 0x20;
const comma = 0x2c;
const greaterThan = 0x3e;
const pipe = 0x7c;

/** Whether a character is an ASCII letter or digit. */
function isWordCharacter(code: number): boolean {
  const lowerCase = code | 0x20;
  return (lowerCase >= 0x61 && lowerCase <= 0x7a) || (code >= 0x30 && code <= 0x39);
}

/**
 * Returns the offset of the first token over `tokensMax`, or undefined if the text has fewer tokens. The library's lexer takes a
 * tenth of the time of its parser, and almost no memory.
 */
function offsetOfToken(text: string, tokensMax: number): number | undefined {
  let offset = 0;
  let tokens = 0;
  for (const token of new Lexer().lex(text)) {
    if (lexerMarks.has(token)) continue;
    tokens += 1;
    if (tokens > tokensMax) return offset;
    offset += token.length;
  }
  return undefined;
}

/**
 * Marks that the lexer inserts between tokens. The marks stand for the start of a document, the end of a flow collection, and a
 * following scalar.
 */
const lexerMarks: ReadonlySet<string> = new Set(['\u0002', '\u0018', '\u001f']);

function syntaxProblems(
  errors: readonly YAMLError[],
  {
    text,
    canFill,
    problemAt,
  }: { readonly text: string; readonly canFill: boolean; readonly problemAt: ProblemAt },
): Problem[] {
  const problems: Problem[] = [];
  for (const error of errors.slice(0, configSizes.syntaxErrorsMax)) {
    const [offset] = error.pos;
    if (canFill && text.slice(offset - 1, offset + 1) === '${') {
      problems.push(
        problemAt(
          offset - 1,
          'inside `{ }` and `[ ]` a text with a variable needs quotes, `"${NAME}"`, and a number a line of its own, `port: ${NAME}`',
        ),
      );
      // The library's further syntax errors are consequences of the unquoted variable.
      break;
    }
    problems.push(problemAt(visibleOffset(text, offset), syntaxMessage(error)));
  }
  return problems;
}

/**
 * The library reports an unclosed bracket or quote at the end of the file. The problem is reported at the last line with text.
 */
function visibleOffset(text: string, offset: number): number {
  const lineStart = text.lastIndexOf('\n', offset - 1) + 1;
  const isBlank = /^[^\S\n]*(\n|$)/.test(text.slice(lineStart));
  return isBlank ? text.slice(0, lineStart).trimEnd().length : offset;
}

/** Tollgate's own messages, because the YAML library gives no advice about these faults. */
const syntaxAdvice: Partial<Record<YAMLError['code'], string>> = {
  TAB_AS_INDENT: 'indent with spaces, not with tabs',
  BAD_DIRECTIVE: 'a line may not begin with `%`',
  MULTIPLE_DOCS: 'a file holds one document; remove `---` and what follows',
  NON_STRING_KEY: 'a field name must be plain text',
  RESOURCE_EXHAUSTION: 'it is nested too deeply',
  TAG_RESOLVE_FAILED: 'remove the `!` tag',
};

function syntaxMessage({ code, message }: YAMLError): string {
  // A colon in a library message may precede a quotation of the file, which may reveal a secret. A colon after a space is part of
  // the library's own message.
  const [sentence = ''] = message.split(/(?<! ):|\n/, 1);
  const detail = syntaxAdvice[code] ?? sentence.charAt(0).toLowerCase() + sentence.slice(1);
  return `this is not valid YAML: ${detail}`;
}

/** Reports duplicate fields and reserved field names in every mapping. */
function addNameProblems(document: ParsedDocument, problemAt: ProblemAt, problems: ProblemList): void {
  visit(document, {
    Map: (_, map) => {
      const firstOffsets = new Map<string, number>();
      for (const { key } of map.items) {
        if (problems.isFull()) return visit.BREAK;
        if (!isScalar<string>(key)) continue;
        const offset = offsetOfNode(key);
        const firstOffset = firstOffsets.get(key.value);
        if (key.value === '__proto__') {
          problems.add(() => problemAt(offset, reservedName));
        } else if (firstOffset === undefined) {
          firstOffsets.set(key.value, offset);
        } else {
          problems.add(() => ({
            ...problemAt(offset, 'this field occurs twice; keep one'),
            related: problemAt(firstOffset, 'the first one is here'),
          }));
        }
      }
      return undefined;
    },
  });
}

/** In JavaScript, an assignment to `__proto__` sets the object's prototype and creates no field. zod has the same problem. */
const reservedName =
  'a field cannot be named `__proto__`, which JavaScript keeps for itself; write another name, such as `proto`';

function fillVariables(
  document: ParsedDocument,
  {
    substitute,
    problemAt,
    problems,
  }: {
    readonly substitute: Substitute;
    readonly problemAt: ProblemAt;
    readonly problems: ProblemList;
  },
): void {
  visit(document, {
    Scalar: (position, scalar, nodes) => {
      if (problems.isFull()) return visit.BREAK;
      if (position === 'key' || typeof scalar.value !== 'string' || !scalar.value.includes('${'))
        return undefined;
      const path = nodes.flatMap((node) => (isPair<Scalar>(node) ? [node.key.value] : []));
      const substituted = substitute(scalar.value, path);
      if (substituted.kind === 'failed') {
        const { reason, files } = substituted;
        problems.add(() => ({ ...problemAt(offsetOfNode(scalar), reason), ...(files && { files }) }));
      } else scalar.value = scalar.type === 'PLAIN' ? resolvePlain(substituted.text) : substituted.text;
      return undefined;
    },
  });
}

/**
 * Converts a filled-in, unquoted scalar to a number or boolean if it looks like a number or boolean, as YAML does for text in the
 * file.
 */
function resolvePlain(text: string): string | number | boolean {
  if (/^[-+]?\d+(\.\d+)?$/.test(text)) return Number(text);
  if (text === 'true' || text === 'false') return text === 'true';
  return text;
}

function offsetOfNode(node: Node): number {
  return node.range?.[0] ?? 0;
}
