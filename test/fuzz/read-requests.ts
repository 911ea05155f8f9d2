import { type Field, framingOf, listOf, readBody, readHead } from './read-message.ts';

export interface ReadRequest {
  readonly method: string;
  readonly target: string;
  readonly version: '1.0' | '1.1';
  readonly fields: readonly Field[];
  /** The content without chunk framing; undefined while the body is incomplete. */
  readonly body: string | undefined;
}

/** Parses the requests in a client's bytes, according to the RFC. */
export interface RequestsReading {
  /** The last request may have an incomplete body. */
  readonly requests: readonly ReadRequest[];
  /**
   * The method of each request. The framing of a response depends on whether the method is HEAD (RFC 9112 §6.3). If the bytes end with a
   * malformed or incomplete request, the last entry is HEAD or an empty string.
   */
  readonly methods: readonly string[];
  /**
   * `clean`: no bytes remain. `closed`: the last request closes the connection, and the remaining bytes are ignored. `incomplete`: more
   * bytes could complete the remaining request. `malformed`: the remaining bytes cannot become a request.
   */
  readonly end: 'clean' | 'closed' | 'incomplete' | 'malformed';
  readonly why: string;
}

/**
 * RFC 9112 §3 lets a recipient accept several spaces between the parts of a request line. All parsers interpret a line with several spaces
 * in the same way.
 */
const requestLine = /^([!#$%&'*+\-.^_`|~0-9A-Za-z]+) +([\x21-\x7e\x80-\xff]+) +HTTP\/(1\.[01])$/;

/** Reads the pipelined requests of one connection. */
export function readRequests(text: string): RequestsReading {
  const requests: ReadRequest[] = [];
  const ended = (end: RequestsReading['end'], why = '') => {
    const methods = requests.map(({ method }) => method);
    if (end === 'malformed' || end === 'incomplete') methods.push(text.startsWith('HEAD', at) ? 'HEAD' : '');
    return { requests, methods, end, why };
  };
  let at = 0;
  for (;;) {
    // Empty lines before a request are ignored (RFC 9112 §2.2).
    while (text[at] === '\r' || text[at] === '\n') at++;
    if (at === text.length) return ended('clean');
    const head = readHead(text, at);
    if (head.kind === 'incomplete') return ended('incomplete', 'no end of the head');
    if (head.kind === 'malformed') return ended('malformed', head.why);
    const line = requestLine.exec(head.startLine);
    if (line === null) return ended('malformed', `the request line ${JSON.stringify(head.startLine)}`);
    const [, method = '', target = '', version] = line;
    if (method === 'CONNECT') return ended('malformed', 'a tunnel');
    const framing = framingOf(head.fields);
    if (version === '1.0' && framing.kind === 'chunked') return ended('malformed', 'chunked in HTTP/1.0');
    if (framing.kind === 'malformed') return ended('malformed', framing.why);
    const body = readBody(text, head.end, framing);
    requests.push({
      method,
      target,
      version: version === '1.0' ? '1.0' : '1.1',
      fields: head.fields,
      body: body.kind === 'complete' ? body.content : undefined,
    });
    if (body.kind === 'incomplete') return ended('incomplete', 'no end of the body');
    if (body.kind === 'malformed') return ended('malformed', body.why);
    at = body.end;
    const connection = listOf(head.fields, 'connection');
    if (connection.includes('close')) return ended('closed');
    if (version === '1.0' && !connection.includes('keep-alive')) return ended('closed');
  }
}
