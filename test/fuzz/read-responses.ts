import { type Field, framingOf, listOf, readBody, readHead, valuesOf } from './read-message.ts';

export interface ReadResponse {
  readonly status: number;
  readonly fields: readonly Field[];
  /** The body of the response; undefined for a response to HEAD, and with status 204 or 304. */
  readonly body: string | undefined;
  /** Whether the response has `Connection: close`. */
  readonly closes: boolean;
  /** Statuses of the interim responses (RFC 9110 §15.2) before this response. */
  readonly interim: readonly number[];
}

export interface ResponsesReading {
  readonly responses: readonly ReadResponse[];
  /** The bytes end in the middle of a response. */
  readonly incomplete: boolean;
  /** The reason why the bytes are not a sequence of valid responses. */
  readonly fault: string | undefined;
}

const statusLine = /^HTTP\/1\.1 ([1-5][0-9]{2}) [\x20-\x7e]+$/;

/**
 * Parses the bytes from a server as a sequence of responses to requests with these methods.
 *
 * @param methods methods of the requests, in order
 */
export function readResponses(text: string, methods: readonly string[]): ResponsesReading {
  const responses: ReadResponse[] = [];
  const ended = (fault?: string) => ({ responses, incomplete: false, fault });
  let interim: number[] = [];
  let at = 0;
  while (at < text.length) {
    if (responses.at(-1)?.closes) return ended('bytes behind a response with Connection: close');
    const head = readHead(text, at);
    if (head.kind === 'incomplete') return { responses, incomplete: true, fault: undefined };
    if (head.kind === 'malformed') return ended(head.why);
    const status = Number(statusLine.exec(head.startLine)?.[1] ?? 0);
    if (status === 0) return ended(`the status line ${JSON.stringify(head.startLine)}`);
    at = head.end;
    if (status < 200) {
      interim.push(status);
      continue;
    }
    const closes = listOf(head.fields, 'connection').includes('close');
    let body: string | undefined;
    if (hasBody({ status, method: methods[responses.length], closes, follows: text[at] })) {
      const framing = framingOf(head.fields);
      if (framing.kind === 'none') return ended('a response without framing');
      const reading = readBody(text, at, framing);
      if (reading.kind === 'incomplete') return { responses, incomplete: true, fault: undefined };
      if (reading.kind === 'malformed') return ended(reading.why);
      body = reading.content;
      at = reading.end;
    } else if (status === 204 && framingOf(head.fields).kind !== 'none') return ended('a 204 with framing');
    responses.push({ status, fields: head.fields, body, closes, interim });
    interim = [];
  }
  return { responses, incomplete: interim.length > 0, fault: undefined };
}

/**
 * A response to HEAD has no body, with one exception. A server that could not parse a request may not know its method. The error response,
 * which is the last on its connection, may therefore have a body.
 */
function hasBody(response: {
  readonly status: number;
  readonly method: string | undefined;
  readonly closes: boolean;
  readonly follows: string | undefined;
}): boolean {
  if (response.status === 204 || response.status === 304) return false;
  return (
    response.method !== 'HEAD' || (response.status >= 400 && response.closes && response.follows === '{')
  );
}

/** The only value of a field; undefined when the field is missing or occurs more than once. */
export function onlyValue(fields: readonly Field[], name: string): string | undefined {
  const values = valuesOf(fields, name);
  return values.length === 1 ? values[0] : undefined;
}
