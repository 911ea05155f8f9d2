import { parseEvents, YAMLException } from 'js-yaml';
import { configSizes } from '../config-sizes.ts';
import type { Place, Problem } from '../problems/problem.ts';
import { createProblemList } from '../problems/problem-list.ts';
import type { FileKind } from '../problems/show-line.ts';
import { createTextPlaces } from '../problems/text-places.ts';
import { type IndentedText, parseIndented } from './closing-brackets.ts';
import { parseJson } from './parse-json.ts';
import { type AliasTargets, readEvents, type Substitute } from './read-events.ts';
import { createOffsetOf, type OffsetOf, type YamlPart, type YamlPath } from './yaml-offset.ts';

export interface YamlSource {
  readonly value: unknown;
  /** A missing part has the position of the nearest part around it. */
  placeOf(path: YamlPath, part?: YamlPart): Place;
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

/**
 * A text that is JSON is parsed as JSON, and read as YAML only if a place in it is needed. Line and column numbers are computed only for
 * problems.
 *
 * @param substitute fills in `${…}` in a scalar; called with the scalar's path after parsing, so that a value cannot add YAML structure.
 * Without it, `${…}` is ordinary text
 * @param marksMax punctuation marks and line breaks in the file
 */
export function parseYaml(options: {
  readonly file: string;
  readonly kind: FileKind;
  readonly text: string;
  readonly substitute?: Substitute;
  readonly marksMax?: number;
}): ParsedYaml {
  const { file, kind, text, substitute, marksMax = configSizes.marksMax } = options;
  const { placeAt, lineAt } = createTextPlaces({ file, kind, text });
  const problemAt = (offset: number, message: string): Problem => ({ ...placeAt(offset), message });
  const sourceOf = (value: unknown, offsetOf: OffsetOf): YamlSource => ({
    value,
    placeOf: (path, part = 'value') => placeAt(offsetOf(path, part)),
    lineOf: (path) => lineAt(offsetOf(path, 'value')),
  });

  const excess = text.length > marksMax ? offsetOfMark(text, marksMax) : undefined;
  if (excess !== undefined) {
    const message = `reading stops here: a file may have at most ${marksMax} punctuation marks and line breaks`;
    return { kind: 'invalid', problems: [problemAt(excess, message)] };
  }

  const json = substitute !== undefined && text.includes('${') ? undefined : parseJson(text);
  if (json !== undefined) {
    return { kind: 'parsed', problems: [], source: sourceOf(json.value, jsonOffsets(text)) };
  }

  const parsed = eventsOf(text);
  if ('reason' in parsed) {
    const { offset, message } = syntaxProblem(text, parsed, substitute !== undefined);
    return { kind: 'invalid', problems: [problemAt(offset, message)] };
  }
  const { events, writtenOffset } = parsed;
  const faultAt = (offset: number, message: string) => problemAt(writtenOffset(offset), message);
  const names = createProblemList();
  const variables = createProblemList();
  const read = readEvents(parsed.text, events, {
    substitute,
    aliasedMax: configSizes.aliasedValuesMax,
    note: {
      duplicate: (offset, firstOffset) =>
        names.add(() => ({
          ...faultAt(offset, 'this field occurs twice; keep one'),
          related: faultAt(firstOffset, 'the first one is here'),
        })),
      reservedName: (offset) => names.add(() => faultAt(offset, reservedName)),
      unfilled: (offset, { reason, files }) =>
        variables.add(() => ({ ...faultAt(offset, reason), ...(files && { files }) })),
    },
  });
  const problems = [...names.problems.toSorted(byPlace), ...variables.problems];
  if (read.kind === 'failed') {
    return { kind: 'invalid', problems: [...problems, faultAt(read.offset, read.reason)] };
  }
  return { kind: 'parsed', problems, source: sourceOf(read.value, offsetsIn(parsed, read.targets)) };
}

function byPlace(a: Problem, b: Problem): number {
  return a.line - b.line || a.column - b.column;
}

const parserOptions = { maxDepth: 200 } as const;

const loneCharacter =
  'a carriage return may only stand before a line feed, and a byte order mark only at the start';

interface SyntaxFault {
  readonly offset: number;
  readonly reason: string;
}

function eventsOf(text: string): IndentedText | SyntaxFault {
  // Other readers of YAML take such a character as text.
  const lone = text.search(/\r(?!\n)|(?!^)\uFEFF/);
  if (lone !== -1) return { offset: lone, reason: loneCharacter };
  const directive = /^\uFEFF?(?:[ \t]*(?:#.*)?\r?\n|%YAML 1\.2[ \t]*\r?\n)*(?=%)/.exec(text);
  if (directive !== null) return { offset: directive[0].length, reason: 'a directive' };
  const parse = (written: string) => parseEvents(written, parserOptions);
  try {
    return { text, events: parse(text), writtenOffset: (offset) => offset };
  } catch (error) {
    const fault = faultOf(error);
    if (!/^[}\]]/.test(text.slice(fault.offset, fault.offset + 1))) return fault;
    try {
      return parseIndented(text, parse) ?? fault;
    } catch {
      return fault;
    }
  }
}

function faultOf(error: unknown): SyntaxFault {
  if (!(error instanceof YAMLException)) throw error;
  const position = Object(error.mark).position;
  return { offset: typeof position === 'number' ? position : 0, reason: error.reason };
}

/** Converts to offsets in the written text. */
function offsetsIn({ text, events, writtenOffset }: IndentedText, targets: AliasTargets): OffsetOf {
  const offsetOf = createOffsetOf(text, events, targets);
  return (path, part) => writtenOffset(offsetOf(path, part));
}

/** JSON is also YAML if it has no tabs and no carriage returns. */
function jsonOffsets(text: string): OffsetOf {
  let offsetOf: OffsetOf | undefined;
  return (path, part) => {
    if (offsetOf === undefined) {
      const parsed = eventsOf(text.replaceAll(/[\t\r]/g, ' '));
      offsetOf = 'reason' in parsed ? () => 0 : offsetsIn(parsed, new Map());
    }
    return offsetOf(path, part);
  };
}

/** The first mark over `marksMax`. Each event of the parser needs at least one mark. */
function offsetOfMark(text: string, marksMax: number): number | undefined {
  let marks = 0;
  for (let at = 0; at < text.length; at++) {
    if (isMark(text.charCodeAt(at))) marks += 1;
    if (marks > marksMax) return at;
  }
  return undefined;
}

/** A line break or one of `, : - ? [ ] { }`. */
function isMark(code: number): boolean {
  switch (code) {
    case 0x0a:
    case 0x2c:
    case 0x2d:
    case 0x3a:
    case 0x3f:
    case 0x5b:
    case 0x5d:
    case 0x7b:
    case 0x7d:
      return true;
    default:
      return false;
  }
}

/** Never repeats a part of the file, which may be a secret. */
function syntaxProblem(text: string, { offset, reason }: SyntaxFault, canFill: boolean) {
  const variable = text.lastIndexOf('${', offset);
  const isInVariable = canFill && variable !== -1 && offset - variable <= 2 && offset - variable >= 0;
  if (isInVariable) {
    const message =
      'inside `{ }` and `[ ]` a text with a variable needs quotes, `"${NAME}"`, and a number a line of its own, `port: ${NAME}`';
    return { offset: variable, message };
  }
  const seen = visibleOffset(text, offset);
  const unspaced = unspacedColon(text, seen);
  if (unspaced !== undefined) return { offset: unspaced, message: spaceAfterColon };
  const known = syntaxAdvice.find(([pattern]) => pattern.test(reason));
  const { at, advice } = adviceFromLine(text, seen, known?.[1] === misplaced) ?? {
    at: seen,
    advice: known?.[1] ?? reason.replace(/[:"'].*$/s, '').trim(),
  };
  return { offset: at, message: `this is not valid YAML: ${advice}` };
}

/**
 * Advice for the line of a syntax error and the line before it.
 *
 * @param isMisplaced whether the library only says that something stands at the wrong place
 */
function adviceFromLine(text: string, offset: number, isMisplaced: boolean) {
  const start = text.lastIndexOf('\n', offset - 1) + 1;
  const before = text.slice(start, offset);
  if (/^\s*\t/.test(before) || /\t[ \t]*[[{]?$/.test(before)) return { at: offset, advice: noTabs };
  if (!isMisplaced) return undefined;
  if (/^(?:---|\.\.\.)/.test(text.slice(start))) return { at: start, advice: oneDocument };
  if (/^ *(?:- +)?[^\s:]+: +/.test(before))
    return { at: offset, advice: 'put the text after the colon in quotes' };
  const lineBefore = text.lastIndexOf('\n', start - 2) + 1;
  const lone = /^ *(?=[\w-]+[ \t]*\r?\n)/.exec(text.slice(lineBefore, start));
  return lone === null
    ? undefined
    : { at: lineBefore + lone[0].length, advice: 'a colon and a space are missing after this name' };
}

const noTabs = 'indent with spaces, not with tabs';
const oneDocument = 'a file holds one document; remove `---` and what follows';
const misplaced = 'the line needs other indentation, or a colon and a space after a name';

/** Has no space after its colon, as in `perMinute:60`. A URL does not match. */
export const unspacedName = /^(?:[A-Za-z_][\w-]*|"[^"]*"|'[^']*'):(?=[^\s:/])/;

export const spaceAfterColon = 'a space is missing after the colon: write `name: value`';

/** A line such as `environment:production` at or just before a syntax error. */
function unspacedColon(text: string, offset: number): number | undefined {
  let lineStart = text.lastIndexOf('\n', offset - 1) + 1;
  for (let lines = 0; lines < 2; lines++) {
    const [indent = ''] = /^[ -]*/.exec(text.slice(lineStart)) ?? [];
    const start = lineStart + indent.length;
    const found = unspacedName.exec(text.slice(start, text.indexOf('\n', start) >>> 0));
    if (found !== null) return start + found[0].length;
    lineStart = text.lastIndexOf('\n', lineStart - 2) + 1;
  }
  return undefined;
}

/** The library reports an unclosed bracket or quote at the end of the file. The last line with text is reported instead. */
function visibleOffset(text: string, offset: number): number {
  const lineStart = text.lastIndexOf('\n', offset - 1) + 1;
  const isBlank = /^[^\S\n]*(\n|$)/.test(text.slice(lineStart));
  return isBlank ? text.slice(0, lineStart).trimEnd().length : offset;
}

/** The YAML library gives no advice about these faults. */
const syntaxAdvice: readonly (readonly [reason: RegExp, advice: string])[] = [
  [/^tab characters/, noTabs],
  [/directive|YAML version/, 'a line may not begin with `%`'],
  [/^nesting exceeded/, 'it is nested too deeply'],
  [/^deficient indentation/, 'a `}`, a `]` or a quote is missing, or the line needs more spaces before it'],
  [/within a flow collection|^missed comma/, 'a comma, a `}` or a `]` is missing'],
  [/quoted scalar/, 'a quote is missing'],
  [/mapping key|multiline key|mapping entry|sequence entry|separator is expected/, misplaced],
  [/tag/, 'remove the `!` tag'],
];

/** An assignment to `__proto__` sets the prototype of an object and creates no field. zod has the same problem. */
const reservedName =
  'a field cannot be named `__proto__`, which JavaScript keeps for itself; write another name, such as `proto`';
