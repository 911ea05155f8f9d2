/**
 * The YAML parser takes several times as long. Undefined if the text is not JSON, or if the YAML parser must report a problem: a name that
 * occurs twice in an object, or the name `__proto__`.
 */
export function parseJson(text: string): { readonly value: unknown } | undefined {
  if (!/^\s*[{[]/.test(text)) return undefined;
  try {
    const value: unknown = JSON.parse(text);
    return countNames(value) === countColons(text) ? { value } : undefined;
  } catch {
    // Not JSON, or nested too deeply.
    return undefined;
  }
}

/** Outside of strings. */
function countColons(text: string): number {
  let colons = 0;
  for (let at = 0; at < text.length; at++) {
    const code = text.charCodeAt(at);
    if (code === quote) at = endOfString(text, at);
    else if (code === colon) colons += 1;
  }
  return colons;
}

/** The YAML parser reads a deeper text, or reports that it is too deep. */
const depthMax = 200;

/**
 * A repeated name in an object counts once, so a text with repeated names has more colons than names. NaN if a name is `__proto__`, or if
 * the value is nested deeper than `depthMax`.
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

/** The offset of the closing quote, or the length of the text. */
function endOfString(text: string, start: number): number {
  for (let end = text.indexOf('"', start + 1); end !== -1; end = text.indexOf('"', end + 1)) {
    let backslashes = 0;
    while (text.charCodeAt(end - 1 - backslashes) === backslash) backslashes += 1;
    if (backslashes % 2 === 0) return end;
  }
  return text.length;
}

const quote = 0x22;
const colon = 0x3a;
const backslash = 0x5c;
