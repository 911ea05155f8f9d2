/**
 * A strict parser of HTTP/1.1 messages (RFC 9112) that shares no code with the gateway. The parser rejects a message that two parsers could
 * interpret differently. Texts are Latin-1, with one character for each octet.
 */

export interface Field {
  /** Lower case. */
  readonly name: string;
  readonly value: string;
}

export interface Head {
  readonly startLine: string;
  readonly fields: readonly Field[];
  /** The offset at which the body begins. */
  readonly end: number;
}

export type Reading<T> =
  | ({ readonly kind: 'complete' } & T)
  | { readonly kind: 'incomplete' }
  | { readonly kind: 'malformed'; readonly why: string };

export interface Body {
  readonly content: string;
  readonly end: number;
}

/** The start line and the header fields, up to the empty line. */
export function readHead(text: string, start: number): Reading<Head> {
  const terminator = text.indexOf('\r\n\r\n', start);
  if (terminator === -1) return { kind: 'incomplete' };
  const [startLine = '', ...lines] = text.slice(start, terminator).split('\r\n');
  if (hasControl.test(startLine)) return malformed(`a control character in ${JSON.stringify(startLine)}`);
  const fields: Field[] = [];
  for (const line of lines) {
    const parts = fieldLine.exec(line);
    if (parts === null) return malformed(`the field line ${JSON.stringify(line)}`);
    fields.push({ name: (parts[1] ?? '').toLowerCase(), value: (parts[2] ?? '').replace(/[ \t]+$/, '') });
  }
  return { kind: 'complete', startLine, fields, end: terminator + 4 };
}

const hasControl = /[\x00-\x1f\x7f]/;
const fieldLine = /^([!#$%&'*+\-.^_`|~0-9A-Za-z]+):[ \t]*([\t\x20-\x7e\x80-\xff]*)$/;

/** The values of a field, in order of arrival. */
export function valuesOf(fields: readonly Field[], name: string): string[] {
  return fields.filter((field) => field.name === name).map(({ value }) => value);
}

/** The members of a field that is a comma-separated list, in lower case. */
export function listOf(fields: readonly Field[], name: string): string[] {
  return valuesOf(fields, name).flatMap((value) =>
    value
      .toLowerCase()
      .split(',')
      .map((one) => one.trim()),
  );
}

/** The framing of a body by RFC 9112 §6.3. A combination of fields that the RFC calls an attack is `malformed`. */
export type Framing =
  | { readonly kind: 'length'; readonly bytes: number }
  | { readonly kind: 'chunked' }
  | { readonly kind: 'none' }
  | { readonly kind: 'malformed'; readonly why: string };

export function framingOf(fields: readonly Field[]): Framing {
  const lengths = valuesOf(fields, 'content-length');
  const codings = valuesOf(fields, 'transfer-encoding');
  if (codings.length > 0) {
    if (lengths.length > 0) return malformed('Content-Length beside Transfer-Encoding');
    const isChunked = codings.length === 1 && codings[0]?.toLowerCase() === 'chunked';
    return isChunked ? { kind: 'chunked' } : malformed(`Transfer-Encoding ${JSON.stringify(codings)}`);
  }
  if (lengths.length === 0) return { kind: 'none' };
  const [length = ''] = lengths;
  const isNumber = lengths.length === 1 && /^\d{1,15}$/.test(length);
  return isNumber
    ? { kind: 'length', bytes: Number(length) }
    : malformed(`Content-Length ${JSON.stringify(lengths)}`);
}

export function readBody(text: string, start: number, framing: Framing): Reading<Body> {
  switch (framing.kind) {
    case 'none':
      return { kind: 'complete', content: '', end: start };
    case 'length': {
      const end = start + framing.bytes;
      if (end > text.length) return { kind: 'incomplete' };
      return { kind: 'complete', content: text.slice(start, end), end };
    }
    case 'chunked':
      return readChunked(text, start);
    case 'malformed':
      return framing;
  }
}

/** RFC 9112 §7.1 sets no largest chunk size; Node's parser accepts sizes that fit in 64 bits. */
const chunkLine = /^0*([0-9A-Fa-f]{1,16})(;[\t\x20-\x7e\x80-\xff]*)?$/;

function readChunked(text: string, start: number): Reading<Body> {
  let content = '';
  let at = start;
  for (;;) {
    const lineEnd = text.indexOf('\r\n', at);
    if (lineEnd === -1) return { kind: 'incomplete' };
    const size = chunkLine.exec(text.slice(at, lineEnd))?.[1];
    if (size === undefined)
      return malformed(`the chunk size line ${JSON.stringify(text.slice(at, lineEnd))}`);
    const bytes = Number.parseInt(size, 16);
    at = lineEnd + 2;
    if (bytes === 0) return readTrailers(text, lineEnd, content);
    if (text.length < at + bytes + 2) {
      const isBroken = text.length > at + bytes && text[at + bytes] !== '\r';
      return isBroken ? malformed('no line end behind a chunk') : { kind: 'incomplete' };
    }
    content += text.slice(at, at + bytes);
    at += bytes;
    if (text.slice(at, at + 2) !== '\r\n') return malformed('no line end behind a chunk');
    at += 2;
  }
}

/** Parses trailers with `readHead`. `readHead` reads the line end at `lastLineEnd` as an empty start line. */
function readTrailers(text: string, lastLineEnd: number, content: string): Reading<Body> {
  if (text.startsWith('\r\n\r\n', lastLineEnd)) return { kind: 'complete', content, end: lastLineEnd + 4 };
  const trailers = readHead(text, lastLineEnd);
  return trailers.kind === 'complete' ? { kind: 'complete', content, end: trailers.end } : trailers;
}

function malformed(why: string): { readonly kind: 'malformed'; readonly why: string } {
  return { kind: 'malformed', why };
}
