import { IncomingMessage } from 'node:http';
import type { Socket } from 'node:net';
import type { Rejection } from '../errors.ts';
import { ClientResponse } from '../respond/client-response.ts';
import { closeGently } from './close-gently.ts';

/** One client connection: the order of its answers, and its end. */
export interface Connection {
  readonly socket: Socket;
  /** Serves a request when those before it are answered. */
  receive(res: ClientResponse): void;
  /**
   * What the parser refused: a fault in the body of the newest request is that request's, anything else is served like a
   * request, as the last one.
   */
  reject(rejection: Rejection, options: { readonly isHead: boolean }): void;
  /** Nothing after the requests received so far can be served. */
  stopReceiving(): void;
  /** The request that is received next is the last: Node drops what it has read behind an upgrade that it ignores. */
  receiveLast(): void;
  /** The connection now belongs to whoever serves the upgrade; `res` is for refusing it. */
  handOver(res: ClientResponse): void;
  /** No request has come yet. */
  isNew(): boolean;
  /** No request is under way or waiting. */
  isIdle(): boolean;
  /** Neither side moved a byte for as long as the socket's timer was set to. */
  onInactive(): void;
  /** Whatever is answered last says `Connection: close`; an idle connection stays open for one more request. */
  drain(): void;
  close(): void;
}

export interface ConnectionOptions {
  readonly socket: Socket;
  /** Begins to serve a request, or what the parser made of one. Never throws. */
  readonly serve: (res: ClientResponse) => void;
  readonly bounds: {
    readonly pipelinedMax: number;
    readonly keepAliveTimeoutMs: number;
    readonly keepAliveAnnouncedSeconds: number;
    readonly writeTimeoutMs: number;
    readonly lingerBytesMax: number;
    readonly lingerTimeoutMs: number;
  };
}

type State =
  /** `new`: nothing was served yet; `idle`: all that was received is answered. */
  | { readonly kind: 'new' | 'idle' }
  | { readonly kind: 'serving'; readonly res: ClientResponse }
  /** Answered before its body had arrived; what comes now is the rest of that, and then the next request. */
  | { readonly kind: 'awaiting_body'; readonly req: IncomingMessage }
  /** It belongs to whoever serves an upgrade. */
  | { readonly kind: 'handed_over' }
  /** Nothing more is served or written. */
  | { readonly kind: 'closed' };

/**
 * Requests of one connection are served one after the other, as nginx does: Node would hand out all that a client
 * pipelined at once, also those behind a request whose refusal ends the connection, and would charge and forward
 * requests whose answers can never be sent.
 */
export function createConnection({ socket, serve, bounds }: ConnectionOptions): Connection {
  let state: State = { kind: 'new' };
  /** What may still be received: any number of requests, one, or none. */
  let intake: 'open' | 'last' | 'none' = 'open';
  /** Pipelined behind the request that is being served. */
  const waiting: ClientResponse[] = [];
  /** Nothing is read while requests wait. */
  let isHeld = false;
  /** How long neither side has moved a byte, and what they had moved before. */
  let inactiveMs = 0;
  let bytesMoved = 0;

  // Node calls this after an answer with `Connection: close`. Its own would reset a client that is still sending.
  const destroySoon = socket.destroySoon;
  socket.destroySoon = close;

  function receive(res: ClientResponse): void {
    if (intake === 'none' || state.kind === 'closed') return;
    if (intake === 'last' || isOld(res.req) || waiting.length + 1 === bounds.pipelinedMax) endAfter(res);
    if (state.kind !== 'serving') {
      begin(res);
      return;
    }
    waiting.push(res);
    // Not in this turn: the parser resumes the socket at the end of each message of the packet that it is reading.
    setImmediate(holdWhileWaiting);
  }

  /** HTTP/1.0 without keep-alive (RFC 9112 §9.3); Node's parser also takes `Proxy-Connection` for it. */
  function isOld({ httpVersionMinor, headers }: IncomingMessage): boolean {
    return httpVersionMinor === 0 && headers.connection?.toLowerCase() !== 'keep-alive';
  }

  function begin(res: ClientResponse): void {
    state = { kind: 'serving', res };
    res.keepAliveSeconds = bounds.keepAliveAnnouncedSeconds;
    if (res.socket === null) attach(res);
    res.on('close', onAnswered);
    serve(res);
  }

  /** Node does this for the responses that it makes itself. */
  function attach(res: ClientResponse): void {
    res.assignSocket(socket);
    res.once('finish', () => {
      res.detachSocket(socket);
      close();
    });
  }

  function onAnswered(): void {
    if (state.kind !== 'serving' || socket.destroyed) return;
    const { res } = state;
    if (!res.shouldKeepAlive) close();
    else if (!res.req.complete) state = { kind: 'awaiting_body', req: res.req };
    else serveNext();
  }

  function serveNext(): void {
    const next = waiting.shift();
    if (next === undefined) {
      state = { kind: 'idle' };
      if (intake === 'open') letGo();
      else close();
      return;
    }
    if (!next.req.complete) letGo();
    begin(next);
  }

  /** Up to the last answer: Node takes the end of a client's side, when it reads it, for the end of the client. */
  function holdWhileWaiting(): void {
    if (waiting.length === 0) return;
    isHeld = true;
    socket.pause();
  }

  function letGo(): void {
    if (!isHeld) return;
    isHeld = false;
    socket.resume();
  }

  function endAfter(res: ClientResponse): void {
    res.shouldKeepAlive = false;
    intake = 'none';
  }

  function newest(): ClientResponse | undefined {
    return waiting.at(-1) ?? (state.kind === 'serving' ? state.res : undefined);
  }

  function reject(rejection: Rejection, { isHead }: { readonly isHead: boolean }): void {
    if (state.kind === 'closed' || socket.destroyed) return;
    const faulty = newest();
    if (faulty?.req.complete === false) {
      intake = 'none';
      socket.pause();
      faulty.reject(rejection);
    } else if (state.kind === 'awaiting_body' && !state.req.complete) {
      close();
    } else if (intake !== 'none') {
      // Behind the last request nothing is answered.
      socket.pause();
      receive(responseTo(rejection, isHead));
      intake = 'none';
    }
  }

  /** A response to what never became a request. */
  function responseTo(rejection: Rejection, isHead: boolean): ClientResponse {
    const req = new IncomingMessage(socket);
    req.complete = true;
    if (isHead) req.method = 'HEAD';
    const res = new ClientResponse(req);
    res.reject(rejection);
    return res;
  }

  function close(): void {
    if (state.kind === 'closed') return;
    state = { kind: 'closed' };
    closeGently(socket, { bytesMax: bounds.lingerBytesMax, timeoutMs: bounds.lingerTimeoutMs });
  }

  function onInactive(): void {
    const { bytesRead, bytesWritten, timeout: elapsedMs = 0, writableLength } = socket;
    const isUnmoved = bytesRead + bytesWritten === bytesMoved;
    bytesMoved = bytesRead + bytesWritten;
    inactiveMs = isUnmoved ? inactiveMs + elapsedMs : elapsedMs;
    const isServing = state.kind === 'serving' || state.kind === 'handed_over';
    const isWaiting = !isServing || writableLength > 0;
    const leftMs = (isServing ? bounds.writeTimeoutMs : bounds.keepAliveTimeoutMs) - inactiveMs;
    // The backend's silence and a slow body have their own limits; idleness and a client that does not read end here.
    if (isWaiting && leftMs <= 0) socket.destroy();
    else socket.setTimeout(isWaiting ? Math.min(leftMs, bounds.writeTimeoutMs) : bounds.writeTimeoutMs);
  }

  return {
    socket,
    receive,
    reject,
    stopReceiving() {
      intake = 'none';
      socket.pause();
    },
    handOver(res) {
      state = { kind: 'handed_over' };
      intake = 'none';
      socket.destroySoon = destroySoon;
      res.shouldKeepAlive = false;
      res.assignSocket(socket);
      // Node takes its own listeners off an upgraded socket; `res` needs them until it is detached.
      socket.setTimeout(bounds.writeTimeoutMs);
      socket.on('timeout', () => res.socket === socket && onInactive());
      socket.on('drain', () => res.socket === socket && res.emit('drain'));
      res.once('finish', () =>
        closeGently(socket, { bytesMax: bounds.lingerBytesMax, timeoutMs: bounds.lingerTimeoutMs }),
      );
    },
    receiveLast() {
      if (intake === 'open') intake = 'last';
    },
    isNew: () => state.kind === 'new',
    isIdle: () => state.kind === 'new' || state.kind === 'idle' || state.kind === 'awaiting_body',
    onInactive,
    drain() {
      const last = newest();
      if (last !== undefined && !last.hasBegun) endAfter(last);
      else if (intake === 'open') intake = 'last';
    },
    close,
  };
}
