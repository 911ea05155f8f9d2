/**
 * Reads and writes JSON with exact integers. `JSON.parse` alone rounds integers beyond 2^53. The reviver of `JSON.parse` also receives the
 * source text of each number, and `JSON.rawJSON` writes digits unchanged (proposal-json-parse-with-source, available in Node 22).
 */

import { bounds } from './bounds.ts';
import { isInt64 } from './int64.ts';

declare global {
  interface JSON {
    rawJSON(text: string): object;
  }
}

/** A parsed body. An integer in the int64 range is a bigint, and every other number is a JavaScript number. */
export type ParsedJson =
  | { readonly kind: 'parsed'; readonly value: unknown }
  | { readonly kind: 'invalid'; readonly problem: string };

const utf8 = new TextDecoder('utf-8', { fatal: true });

/**
 * Parses a body strictly. It must be UTF-8 (RFC 8259 §8.1), at most `bounds.jsonDepthMax` levels deep, and without `__proto__`. No field
 * may appear twice, because readers interpret repeated fields differently (§4).
 */
export function parseJson(bytes: Uint8Array): ParsedJson {
  if (bytes.length === 0) return { kind: 'invalid', problem: 'the body is empty' };
  let text: string;
  try {
    text = utf8.decode(bytes);
  } catch {
    return { kind: 'invalid', problem: 'the body is not valid UTF-8' };
  }
  try {
    JSON.parse(text);
  } catch (error) {
    const reason = error instanceof SyntaxError ? error.message : 'unreadable';
    return { kind: 'invalid', problem: `the body is not valid JSON: ${reason}` };
  }
  const problem = findStructureProblem(text);
  // A reviver recurses, while `JSON.parse` alone does not. `findStructureProblem` therefore checks the depth before the parse with a
  // reviver.
  return problem === undefined
    ? { kind: 'parsed', value: JSON.parse(text, reviveInteger) }
    : { kind: 'invalid', problem };
}

/** Finds a repeated field, `__proto__` or deep nesting, which `JSON.parse` accepts. `text` is valid JSON. */
function findStructureProblem(text: string): string | undefined {
  // One entry for each open bracket: the field names so far in an object, or undefined for an array.
  const open: (Set<string> | undefined)[] = [];
  let lastString = '';
  for (let at = 0; at < text.length; at++) {
    switch (text[at]) {
      case '"': {
        const end = endOfString(text, at);
        lastString = text.slice(at, end + 1);
        at = end;
        break;
      }
      case ':': {
        const name: string = JSON.parse(lastString);
        const names = open.at(-1);
        if (name === '__proto__') return 'the field "__proto__" is not allowed';
        if (names?.has(name)) return `the field ${JSON.stringify(name.slice(0, 100))} is given twice`;
        names?.add(name);
        break;
      }
      case '{':
      case '[':
        open.push(text[at] === '{' ? new Set() : undefined);
        if (open.length > bounds.jsonDepthMax) {
          return `the body is nested deeper than ${bounds.jsonDepthMax} levels`;
        }
        break;
      case '}':
      case ']':
        open.pop();
        break;
    }
  }
  return undefined;
}

function endOfString(text: string, start: number): number {
  let end = start + 1;
  while (text[end] !== '"') end += text[end] === '\\' ? 2 : 1;
  return end;
}

function reviveInteger(_name: string, value: unknown, context?: { source?: string }): unknown {
  if (typeof value !== 'number' || context?.source === undefined) return value;
  return toInt64(context.source) ?? value;
}

/**
 * The int64 that a JSON number represents, or undefined. The value of a number, and not its spelling, decides whether it is an integer:
 * 1.0 and 1e3 are integers, 1.5 and 1e-3 are not (JSON Schema draft 2020-12, validation §6.1.1).
 */
function toInt64(source: string): bigint | undefined {
  const [, sign = '', whole = '', fraction = '', exponent = '0'] =
    /^(-?)(\d+)(?:\.(\d+))?(?:[eE]([+-]?\d+))?$/.exec(source) ?? [];
  const digits = whole + fraction;
  let first = 0;
  while (digits[first] === '0') first++;
  if (first === digits.length) return 0n;
  let end = digits.length;
  while (digits[end - 1] === '0') end--;
  const zeros = Number(exponent) - fraction.length + (digits.length - end);
  // Every int64 has at most 19 digits. Longer numbers are not converted, because a million digits would take seconds.
  if (zeros < 0 || end - first + zeros > 19) return undefined;
  const value = BigInt(sign + digits.slice(first, end) + '0'.repeat(zeros));
  return isInt64(value) ? value : undefined;
}

/** Writes JSON, with each bigint as its digits. */
export function stringifyJson(value: unknown): string {
  return JSON.stringify(value, (_name, item) =>
    typeof item === 'bigint' ? JSON.rawJSON(String(item)) : item,
  );
}
