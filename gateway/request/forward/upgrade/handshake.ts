import type { ClientRequest, IncomingMessage } from 'node:http';
import type { Socket } from 'node:net';
import { pipeline } from 'node:stream/promises';
import { setImmediate as nextTurn } from 'node:timers/promises';
import type { ErrorCode } from '../../../shared/errors.ts';
import {
  offeredProtocols,
  protocolField,
  tollgateProtocol,
} from '../../../shared/http/web-socket-protocols.ts';
import { startDeadline } from '../../../shared/structures/within-deadline.ts';
import { fieldLine } from '../../transport/head-grammar.ts';
import { HeadReader } from '../../transport/head-reader.ts';
import {
  type InterimHead,
  type Malformed,
  malformed,
  parseResponseHead,
  type ResponseHead,
} from '../../transport/response-head.ts';
import { connectionErrorText } from '../../transport/target-tls.ts';
import type { UpgradeRequest } from '../forward-types.ts';
import { interimFields, responseFields } from '../response-fields.ts';
import type { Target } from '../upstream/targets.ts';
import type { LiveUpstream } from '../upstream/upstreams.ts';

export type HandshakeEnd =
  | { readonly kind: 'forwarded'; readonly status: number }
  | { readonly kind: 'client_gone' }
  | HandshakeFailure;

export interface HandshakeFailure {
  readonly kind: 'failed';
  readonly code: ErrorCode;
  readonly cause: string;
  readonly retryAfterSeconds?: number;
}

export interface Chosen {
  readonly kind: 'chosen';
  readonly upstream: LiveUpstream;
  readonly target: Target;
}

interface Handshake {
  readonly request: UpgradeRequest;
  readonly chosen: Chosen;
  readonly isDraining: () => boolean;
  /** Called when the target has switched protocols and the client has received the 101. */
  readonly onSwitch: (targetSocket: Socket) => void;
}

/**
 * Waits for the target's response to a handshake and forwards it to the client. Node's HTTP client parses leniently. The strict parser of
 * the gateway therefore reads the same octets. If the two parsers disagree, the handshake fails. The promise rejects only when the gateway
 * has a bug.
 *
 * The function is long because the listeners of all events share the state of one handshake.
 */
export function awaitAnswer(
  handshake: ClientRequest,
  { request, chosen, isDraining, onSwitch }: Handshake,
): Promise<HandshakeEnd> {
  const { bounds, targets } = chosen.upstream;
  const { promise, resolve, reject } = Promise.withResolvers<HandshakeEnd>();
  const interims: InterimHead[] = [];
  const reader = new HeadReader(
    bounds,
    (text) => parseHandshakeHead(text, bounds.upstreamFieldsCountMax),
    (interim) => interims.push(interim),
  );
  /** The head of the target's response; undefined until the head is complete. */
  let head: AnsweredHead;
  let connected = false;
  for (const event of ['upgrade', 'response', 'error']) handshake.removeAllListeners(event);

  // The headers timeout is a timer, because a socket's own timeout restarts with each octet of a slow response head.
  const stopHeadersTimeout = startDeadline(bounds.upstreamHeadersTimeoutMs, () =>
    handshake.destroy(new HandshakeTimeout()),
  );
  // The timeout of http-proxy-3 does not cover the TLS handshake.
  const stopConnectTimeout = startDeadline(bounds.connectTimeoutMs, () => {
    handshake.destroy(new Error(`no connection within ${bounds.connectTimeoutMs} ms`));
  });
  handshake.once('close', () => {
    stopHeadersTimeout();
    stopConnectTimeout();
  });
  handshake.once('socket', (targetSocket) => {
    targetSocket.once(chosen.target.tls === undefined ? 'connect' : 'secureConnect', () => {
      connected = true;
      stopConnectTimeout();
    });
    // The strict parser's listener precedes Node's own listener, so a malformed head is found before Node emits a response.
    targetSocket.prependListener('data', function read(piece: Buffer) {
      head = reader.read(piece.toString('latin1'));
      if (head !== undefined) {
        targetSocket.off('data', read);
        // Frees the text of the head, because the reader stays in memory while the tunnel is open.
        reader.reset();
      }
      if (head?.kind !== 'malformed') {
        guard(targetSocket, () => sendInterims(interims.splice(0), request));
        return;
      }
      resolve(failed(head.cause));
      // `destroy` gets no error as its argument, because an error event without a listener would end the process. Node removes its own
      // error listener when it finds a 101 in the received octets.
      targetSocket.destroy();
    });
  });
  handshake.once('response', (response) => {
    // The error listener is added before `passOn` runs. If `passOn` ran first, a close by the gateway would be logged as a close by the
    // client.
    response.once('error', () => resolve(bodyIsCut));
    passOn(response, head, request).then(resolve, (bug) => {
      response.destroy();
      reject(bug);
    });
  });
  handshake.once('upgrade', (response: IncomingMessage, targetSocket: Socket, first: Buffer) =>
    guard(targetSocket, () => {
      targetSocket.on('error', () => targetSocket.destroy());
      const end = isDraining() ? unavailable('the gateway drains') : acceptSwitch(response, head, request);
      resolve(end);
      if (end.kind === 'failed') {
        targetSocket.destroy();
        return;
      }
      stopHeadersTimeout();
      targetSocket.setTimeout(0).setNoDelay(true).setKeepAlive(true);
      if (first.length > 0) targetSocket.unshift(first);
      onSwitch(targetSocket);
    }),
  );
  handshake.on('error', (error) => {
    // The handshake ends with its client, which says nothing about the target.
    if (request.socket.destroyed) return resolve({ kind: 'client_gone' });
    const end = handshakeFailure(error, connected);
    if (end.code === 'upstream_unavailable') targets.eject(chosen.target, end.cause);
    resolve(end);
  });
  request.socket.once('close', () => {
    resolve({ kind: 'client_gone' });
    handshake.destroy();
  });
  return promise;

  /** An exception in the handler ends only this handshake. */
  function guard(targetSocket: Socket, step: () => void): void {
    try {
      step();
    } catch (bug) {
      targetSocket.destroy();
      reject(bug);
    }
  }
}

/** The head of a target's response to a handshake: a well-formed 101 (`switch`), or another response. */
type HandshakeHead = { readonly kind: 'switch' } | ResponseHead;
type AnsweredHead = HandshakeHead | Malformed | undefined;

function parseHandshakeHead(text: string, fieldsCountMax: number): HandshakeHead | InterimHead | Malformed {
  if (!switchForm.test(text)) return parseResponseHead(text, 'GET', fieldsCountMax);
  if (framingField.test(text)) return malformed('a 101 response with Content-Length or Transfer-Encoding');
  // Three of the strings from `split` are not fields: the status line, and the two empty strings after the last two CRLFs.
  if (text.split('\r\n').length - 3 > fieldsCountMax) return malformed('too many fields');
  return { kind: 'switch' };
}

/** Matches a 101 response of HTTP/1.1, because HTTP/1.0 defines no 1xx (RFC 9110 §15.2). */
const switchForm = new RegExp(
  `^HTTP/1\\.1 101(?: [\\t\\x20-\\x7e\\x80-\\xff]*)?\\r\\n(?:${fieldLine.source})*\\r\\n$`,
);

/**
 * Fields that a 1xx response must not have (RFC 9110 §8.6, RFC 9112 §6.1). A client that obeys `Content-Length` or `Transfer-Encoding` in a
 * 1xx response would read the first octets of the WebSocket as a body.
 */
const framingField = /\r\n(?:content-length|transfer-encoding)[\t ]*:/i;

class HandshakeTimeout extends Error {}

function sendInterims(interims: readonly InterimHead[], { res }: UpgradeRequest): void {
  for (const { status, fields } of interims) {
    res.sendInterim(status, interimFields(fields));
  }
}

/** Checks the target's 101 response and sends the client a new 101 response. */
function acceptSwitch(
  response: IncomingMessage,
  head: AnsweredHead,
  { req, res, responseFields: ownFields }: UpgradeRequest,
): Exclude<HandshakeEnd, { kind: 'client_gone' }> {
  if (head?.kind !== 'switch') return misread(head);
  if (response.headers.upgrade?.toLowerCase() !== 'websocket') {
    return failed('the target switched to another protocol');
  }
  const fields = responseFields({ status: 101, fields: response.rawHeaders, ownFields });
  // A browser that offers subprotocols closes the WebSocket unless the server selects one of these subprotocols.
  const isSelected = response.headers[protocolField] !== undefined;
  if (!isSelected && offeredProtocols(req.rawHeaders).includes(tollgateProtocol)) {
    fields.push('Sec-WebSocket-Protocol', tollgateProtocol);
  }
  res.switchProtocols('websocket', fields);
  return { kind: 'forwarded', status: 101 };
}

/**
 * Forwards a response other than 101 in the same way as the response to an ordinary request. The gateway closes the client's connection
 * after this response.
 */
async function passOn(
  response: IncomingMessage,
  head: AnsweredHead,
  { res, responseFields: ownFields }: UpgradeRequest,
): Promise<HandshakeEnd> {
  if (head?.kind !== 'final') {
    response.destroy();
    return misread(head);
  }
  const { status } = head;
  // Node's client may find a fault in the part of the body that arrived with the head. A response with a faulty body counts as failed.
  await nextTurn();
  if (response.socket.destroyed && !response.complete) return bodyIsCut;
  res.begin(status, responseFields({ status, fields: head.fields, ownFields }));
  res.flushHeaders();
  try {
    await pipeline(response, res);
  } catch {
    return bodyIsCut;
  }
  return { kind: 'forwarded', status };
}

/** The failure when Node's client and the strict parser read different responses. */
function misread(head: AnsweredHead): HandshakeFailure {
  return failed(head?.kind === 'malformed' ? head.cause : 'two parsers read the response differently');
}

function failed(cause: string): HandshakeFailure {
  return { kind: 'failed', code: 'upstream_failed', cause };
}

const bodyIsCut = failed('the target closed the connection before its response was complete');

function handshakeFailure(error: Error, connected: boolean): HandshakeFailure {
  if (!connected) return unavailable(connectionErrorText(error));
  if (error instanceof HandshakeTimeout) {
    return { kind: 'failed', code: 'upstream_timeout', cause: 'no response to the handshake' };
  }
  return failed(connectionErrorText(error));
}

export function unavailable(cause: string): HandshakeFailure {
  return { kind: 'failed', code: 'upstream_unavailable', cause, retryAfterSeconds: 1 };
}
