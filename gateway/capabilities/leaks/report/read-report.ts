import { digestSecret, isInventedSecret } from '../../../shared/secrets.ts';
import type { Bounds } from '../../../shared/timeouts-and-sizes.ts';
import { type LeakedPlace, leakedPlace } from './leaked-place.ts';
import type { Slices } from './slices.ts';

/** An entry of a report. The secret itself is not kept. */
export interface ReportedSecret {
  /** The lower-case hex SHA-256 digest of the secret. */
  readonly digest: string;
  /** Whether the secret begins like a secret of Tollgate and has a wrong checksum. */
  readonly isInvented: boolean;
  readonly place: LeakedPlace;
}

/** The entries of a report in their order, or the reason why the report cannot be read. The reason quotes no part of the report. */
export type ReadReport =
  | { readonly kind: 'read'; readonly secrets: readonly ReportedSecret[] }
  | { readonly kind: 'malformed'; readonly message: string };

/**
 * Reads the body of a report: a JSON array of objects with `token`, `type`, `url` and `source`. A body of the maximum size has a hundred
 * thousand entries. Parsing such a body at once would keep the event loop busy for half a second, so the entries are parsed one by one.
 */
export async function readReport(body: Buffer, slices: Slices, bounds: Bounds): Promise<ReadReport> {
  const secrets: ReportedSecret[] = [];
  try {
    for (const entry of entriesOf(body, bounds.leakEntryBytesMax)) {
      const secret = reportedSecret(entry, bounds);
      if (secret === undefined) return malformed(`Entry ${secrets.length + 1} has no \`token\`.`);
      secrets.push(secret);
      await slices.rest();
    }
  } catch (error) {
    if (!(error instanceof SyntaxError || error instanceof TypeError)) throw error;
    return malformed('The body is not a JSON array of objects in UTF-8, or one of its entries is too long.');
  }
  return { kind: 'read', secrets };
}

function malformed(message: string): ReadReport {
  return { kind: 'malformed', message };
}

const utf8 = new TextDecoder('utf-8', { fatal: true });

/** @throws a SyntaxError or TypeError for an entry that is not JSON in UTF-8 */
function reportedSecret(entry: Buffer, bounds: Bounds): ReportedSecret | undefined {
  const stated: unknown = JSON.parse(utf8.decode(entry));
  if (typeof stated !== 'object' || stated === null || !('token' in stated)) return undefined;
  const { token, type, url, source } = stated as Readonly<Record<string, unknown>>;
  if (typeof token !== 'string' || token === '' || token.length > bounds.secretInputCharsMax)
    return undefined;
  return {
    digest: digestSecret(token),
    isInvented: isInventedSecret(token),
    place: leakedPlace({ type: textOf(type), url: textOf(url), source: textOf(source) }, token, bounds),
  };
}

function textOf(value: unknown): string | undefined {
  return typeof value === 'string' ? value : undefined;
}

const [openList, closeList, openObject, closeObject] = [0x5b, 0x5d, 0x7b, 0x7d];
const [comma, quote, backslash] = [0x2c, 0x22, 0x5c];

/**
 * Yields the octets of each element of a JSON array. The generator only finds where an element ends. The caller parses the element, so a
 * mistake inside of an element is found there.
 *
 * @throws a SyntaxError if the text is not an array, or if an element is longer than `entryBytesMax`
 */
function* entriesOf(body: Buffer, entryBytesMax: number): Generator<Buffer> {
  let at = afterBlanks(body, 0);
  if (body[at] !== openList) throw new SyntaxError('not an array');
  at = afterBlanks(body, at + 1);
  if (body[at] !== closeList) {
    for (let isLast = false; !isLast; at++) {
      const end = endOfEntry(body, at, entryBytesMax);
      yield body.subarray(at, end);
      isLast = body[end] === closeList;
      at = end;
    }
    at--;
  }
  if (afterBlanks(body, at + 1) !== body.length) throw new SyntaxError('text after the array');
}

/** Returns the position of the comma or bracket after the element that begins at `from`. */
function endOfEntry(body: Buffer, from: number, entryBytesMax: number): number {
  let depth = 0;
  let isInText = false;
  const last = Math.min(body.length, from + entryBytesMax);
  for (let at = from; at < last; at++) {
    const octet = body[at];
    if (isInText) {
      if (octet === backslash) at++;
      else if (octet === quote) isInText = false;
    } else if (octet === quote) isInText = true;
    else if (octet === openObject || octet === openList) depth++;
    else if (depth === 0 && (octet === comma || octet === closeList)) return at;
    else if (octet === closeObject || octet === closeList) depth--;
  }
  throw new SyntaxError('an element without an end, or a long element');
}

function afterBlanks(body: Buffer, from: number): number {
  let at = from;
  while (body[at] === 0x20 || body[at] === 0x09 || body[at] === 0x0a || body[at] === 0x0d) at++;
  return at;
}
