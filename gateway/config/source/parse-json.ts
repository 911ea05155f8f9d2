import type { OffsetOf } from './yaml-offset.ts';

/**
 * Parses an API document that is JSON. The YAML parser takes thirty times as long. Returns undefined if the text is not JSON, or if the
 * YAML parser must report a problem: a name that occurs twice in an object, the name `__proto__`, or too many tokens.
 *
 * @param tokensMax the maximum number of punctuation characters outside of strings
 */
export function parseJson(text: string, tokensMax: number): { readonly value: unknown } | undefined {
  if (!/^\s*\{/.test(text)) return undefined;
  const colons = countColons(text, tokensMax);
  if (colons === undefined) return undefined;
  try {
    const value: unknown = JSON.parse(text);
    return countNames(value) === colons ? { value } : undefined;
  } catch {
    // The text is not JSON, or it is nested too deeply.
    return undefined;
  }
}

/** Counts the colons outside of strings. Returns undefined if there is more punctuation than `tokensMax`. */
function countColons(text: string, tokensMax: number): number | undefined {
  let colons = 0;
  let rest = 0;
  for (let at = 0; at < text.length; at++) {
    switch (text.charCodeAt(at)) {
      case quote:
        at = endOfString(text, at);
        break;
      case colon:
        colons += 1;
        break;
      case comma:
      case openBracket:
      case closeBracket:
      case openBrace:
      case closeBrace:
        rest += 1;
    }
    if (colons + rest > tokensMax) return undefined;
  }
  return colons;
}

/** The maximum depth for this parser. The YAML parser reads a deeper text, or reports that the text is too deep. */
const depthMax = 200;

/**
 * Counts the names of all objects. A name that is repeated in an object counts once, so a text with repeated names has more colons than
 * names. Returns NaN if a name is `__proto__`, or if the value is nested deeper than `depthMax`.
 */
function countNames(value: unknown, depth = 0): number {
  if (typeof value !== 'object' || value === null) return 0;
  if (depth > depthMax) return Number.NaN;
  let names = 0;
  if (Array.isArray(value)) {
    for (const entry of value) names += countNames(entry, depth + 1);
    return names;
  }
  for (const [name, member] of Object.entries(value)) {
    names += name === '__proto__' ? Number.NaN : 1 + countNames(member, depth + 1);
  }
  return names;
}

/** The offsets of a member's name and value. A list entry has no name. */
interface MemberOffset {
  readonly name: number | undefined;
  readonly value: number;
}

/** Makes the function that finds offsets in valid JSON. Each object and each list is indexed at its first search. */
export function createJsonOffsetOf(text: string): OffsetOf {
  const indexes = new Map<number, ReadonlyMap<PropertyKey, MemberOffset>>();

  function membersAt(offset: number): ReadonlyMap<PropertyKey, MemberOffset> {
    const index = indexes.get(offset) ?? indexMembers(text, offset);
    indexes.set(offset, index);
    return index;
  }

  return (path, part) => {
    let at: MemberOffset = { name: undefined, value: skipSpace(text, 0) };
    for (const step of path) {
      const next = membersAt(at.value).get(step);
      if (next === undefined) return at.name ?? at.value;
      at = next;
    }
    return part === 'name' ? (at.name ?? at.value) : at.value;
  };
}

/** Finds the members of the object or list at an offset. Returns an empty map for other values. */
function indexMembers(text: string, start: number): ReadonlyMap<PropertyKey, MemberOffset> {
  const members = new Map<PropertyKey, MemberOffset>();
  const isObject = text.charCodeAt(start) === openBrace;
  if (!isObject && text.charCodeAt(start) !== openBracket) return members;
  let at = skipSpace(text, start + 1);
  for (let index = 0; at < text.length && !isClosing(text.charCodeAt(at)); index++) {
    let step: PropertyKey = index;
    let name: number | undefined;
    if (isObject) {
      name = at;
      const end = endOfString(text, at) + 1;
      step = String(JSON.parse(text.slice(at, end)));
      at = skipSpace(text, skipSpace(text, end) + 1);
    }
    members.set(step, { name, value: at });
    at = skipSpace(text, endOfValue(text, at));
    if (text.charCodeAt(at) === comma) at = skipSpace(text, at + 1);
  }
  return members;
}

/** Returns the offset of the comma or the closing bracket after a value. */
function endOfValue(text: string, start: number): number {
  let depth = 0;
  for (let at = start; at < text.length; at++) {
    const code = text.charCodeAt(at);
    if (code === quote) at = endOfString(text, at);
    else if (code === openBrace || code === openBracket) depth += 1;
    else if (depth === 0 && (code === comma || isClosing(code))) return at;
    else if (isClosing(code)) depth -= 1;
  }
  return text.length;
}

/** Returns the offset of the closing quote, or the length of the text. */
function endOfString(text: string, start: number): number {
  for (let end = text.indexOf('"', start + 1); end !== -1; end = text.indexOf('"', end + 1)) {
    let backslashes = 0;
    while (text.charCodeAt(end - 1 - backslashes) === backslash) backslashes += 1;
    if (backslashes % 2 === 0) return end;
  }
  return text.length;
}

function skipSpace(text: string, start: number): number {
  let at = start;
  while (at < text.length && text.charCodeAt(at) <= space) at += 1;
  return at;
}

function isClosing(code: number): boolean {
  return code === closeBrace || code === closeBracket;
}

const space = 0x20;
const quote = 0x22;
const comma = 0x2c;
const colon = 0x3a;
const openBracket = 0x5b;
const backslash = 0x5c;
const closeBracket = 0x5d;
const openBrace = 0x7b;
const closeBrace = 0x7d;
