import { IncomingMessage } from 'node:http';
import type { Socket } from 'node:net';
import { TLSSocket } from 'node:tls';
import type { Rejection } from '../../shared/errors.ts';
import { startDeadline } from '../../shared/structures/within-deadline.ts';
import { bytesTaken } from '../../shared/tls/bytes-taken.ts';
import { ClientResponse } from '../respond/client-response.ts';
import { closeGently } from './close-gently.ts';
import { closeInsteadOfDestroy, dropRequests } from './node-patches.ts';

/** One client connection: which of its requests is served when, its idle and write timeouts, and how it is closed. */
export interface Connection {
  readonly socket: Socket;
  /** A request has arrived: it is served once those before it have been answered. */
  receive(res: ClientResponse): void;
  /**
   * The parser has refused what the client sent. Where the body of the newest request is not complete, the fault is in
   * that body and belongs to that request. Otherwise the rejection is served like one more request, the last.
   *
   * @param options.isHead whether the refused request was a HEAD: its response has no body
   */
  reject(rejection: Rejection, options: { readonly isHead: boolean }): void;
  /** Serves no request beyond those received so far. */
  stopReceiving(): void;
  /** Serves one more request and no other: Node drops the bytes behind a request whose `Upgrade` it ignores. */
  receiveLast(): void;
  /** Gives the socket to the forwarder of upgrades. `res` is for a response other than 101. */
  handOver(res: ClientResponse): void;
  /** Whether no request has arrived yet. */
  isNew(): boolean;
  /** Whether no request is being served or waiting. */
  isIdle(): boolean;
  /** Called when the socket's timer fires: for that long neither side has moved a byte. */
  onInactive(): void;
  /** Begins a drain: the last response says `Connection: close`. Where it cannot say so any more, one more is served. */
  drain(): void;
  /** Ends the connection as soon as no request is being served or waiting. */
  closeWhenIdle(): void;
}

export interface ConnectionOptions {
  readonly socket: Socket;
  /** Begins to serve a request or a rejection. Never throws. */
  readonly serve: (res: ClientResponse) => void;
  readonly bounds: {
    readonly pipelinedMax: number;
    readonly requestTimeoutMs: number;
    readonly keepAliveTimeoutMs: number;
    readonly keepAliveAnnouncedSeconds: number;
    readonly writeTimeoutMs: number;
    readonly lingerBytesMax: number;
    readonly lingerTimeoutMs: number;
  };
}

type State =
  /** `new`: no request has arrived yet; `idle`: all requests that arrived are answered. */
  | { readonly kind: 'new' | 'idle' }
  | { readonly kind: 'serving'; readonly res: ClientResponse }
  /** The request was answered before its body was complete: the rest of the body comes first, then the next request. */
  | { readonly kind: 'awaiting_body'; readonly req: IncomingMessage }
  /** The socket belongs to the forwarder of upgrades. */
  | { readonly kind: 'handed_over' }
  /** Nothing more is served, and nothing more is written. */
  | { readonly kind: 'closed' };

/**
 * Serves the requests of one connection one after the other, as nginx does. Node hands out all requests that a client has
 * pipelined at once. Those behind a request whose refusal ends the connection would then be charged and forwarded, though
 * their responses can never be sent.
 */
export function createConnection({ socket, serve, bounds }: ConnectionOptions): Connection {
  let state: State = { kind: 'new' };
  /** How many more requests are accepted: any number, one, or none. */
  let intake: 'open' | 'last' | 'none' = 'open';
  let closesWhenIdle = false;
  /** Requests that the client has pipelined behind the one that is being served. */
  const waiting: ClientResponse[] = [];
  /** Whether reading is paused, because requests wait or none is served any more. */
  let isPaused = false;
  /** How many requests have arrived. */
  let arrived = 0;
  /** Node's timeout of a request that was arriving, which passed while reading was paused. */
  let unfairTimeout: Rejection | undefined;
  /** How long neither side has moved a byte, and how many both had moved when that was measured. */
  let inactiveMs = 0;
  let bytesMoved = 0;
  /** Over TLS: octets that the kernel had taken at the last look. */
  let takenBefore = 0;

  const leaveToNode = closeInsteadOfDestroy(socket, close);

  function receive(res: ClientResponse): void {
    if (state.kind === 'closed') return;
    arrived++;
    if (intake === 'none') {
      // Behind the last request nothing is served, so nothing is kept and no more is read.
      dropRequests(socket);
      if (!isPaused) setImmediate(pauseReading);
      isPaused = true;
      return;
    }
    if (intake === 'last' || isOld(res.req) || waiting.length + 1 === bounds.pipelinedMax) endAfter(res);
    if (state.kind !== 'serving') {
      begin(res);
      return;
    }
    waiting.push(res);
    // One turn later: the parser resumes the socket at the end of each request in the packet that it is reading.
    setImmediate(pauseWhileWaiting);
  }

  /** Whether it is HTTP/1.0 without keep-alive (RFC 9112 §9.3). Node's `shouldKeepAlive` also heeds `Proxy-Connection`. */
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

  /** For the response to a rejection; Node attaches the responses that it has made itself. */
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
      if (intake === 'none' || closesWhenIdle) close();
      else resumeReading();
      return;
    }
    if (!next.req.complete) resumeReading(next.req);
    begin(next);
  }

  /** The end of the client's side stays unread too: Node would take it for the end of both sides. */
  function pauseWhileWaiting(): void {
    if (waiting.length > 0) pauseReading();
  }

  function pauseReading(): void {
    if (state.kind === 'closed') return;
    isPaused = true;
    socket.pause();
  }

  /** @param arriving the request whose body is read on; undefined: a head is */
  function resumeReading(arriving?: IncomingMessage): void {
    if (!isPaused) return;
    isPaused = false;
    socket.resume();
    if (unfairTimeout !== undefined) restartTimeout(unfairTimeout, arriving);
    unfairTimeout = undefined;
  }

  /** The request that is arriving gets its time anew: Node's clock went on while this side did not read. */
  function restartTimeout(rejection: Rejection, arriving: IncomingMessage | undefined): void {
    const arrivedBefore = arrived;
    const stop = startDeadline(bounds.requestTimeoutMs, () => {
      const isHere = arriving === undefined ? arrived > arrivedBefore : arriving.complete;
      if (!isHere) reject(rejection, { isHead: false });
    });
    socket.once('close', stop);
  }

  /** `res` is the last response of the connection. */
  function endAfter(res: ClientResponse): void {
    res.shouldKeepAlive = false;
    intake = 'none';
  }

  function newest(): ClientResponse | undefined {
    return waiting.at(-1) ?? (state.kind === 'serving' ? state.res : undefined);
  }

  function reject(rejection: Rejection, { isHead }: { readonly isHead: boolean }): void {
    if (state.kind === 'closed' || socket.destroyed) return;
    if (isPaused && rejection.code === 'request_timeout') {
      unfairTimeout = rejection;
      return;
    }
    const faulty = newest();
    if (faulty?.req.complete === false) {
      intake = 'none';
      socket.pause();
      faulty.reject(rejection);
    } else if (state.kind === 'awaiting_body' && !state.req.complete) {
      close();
    } else if (intake !== 'none') {
      // A rejection behind the last request is not answered.
      socket.pause();
      receive(responseTo(rejection, isHead));
      intake = 'none';
    }
  }

  /** The response to something that the parser has not accepted as a request. */
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

  function isIdle(): boolean {
    return state.kind === 'new' || state.kind === 'idle' || state.kind === 'awaiting_body';
  }

  function onInactive(): void {
    const { bytesRead, bytesWritten, timeout: elapsedMs = 0, writableLength } = socket;
    const isUnmoved = bytesRead + bytesWritten === bytesMoved;
    bytesMoved = bytesRead + bytesWritten;
    if (writableLength > 0 && isTakenOverTls()) inactiveMs = 0;
    else inactiveMs = isUnmoved ? inactiveMs + elapsedMs : elapsedMs;
    const isServing = state.kind === 'serving' || state.kind === 'handed_over';
    const isWaiting = !isServing || writableLength > 0;
    const leftMs = (isServing ? bounds.writeTimeoutMs : bounds.keepAliveTimeoutMs) - inactiveMs;
    // Idle connections and clients that do not read end here. A silent upstream and a slow body have timeouts of their own.
    if (isWaiting && leftMs <= 0) socket.destroy();
    else socket.setTimeout(isWaiting ? Math.min(leftMs, bounds.writeTimeoutMs) : bounds.writeTimeoutMs);
  }

  /**
   * Whether the client has read on since the last look. Over TLS that does not restart the socket's timer before a whole
   * write is done, so a client that reads nothing any more is disconnected after up to twice the timeout.
   */
  function isTakenOverTls(): boolean {
    if (!(socket instanceof TLSSocket)) return false;
    const before = takenBefore;
    takenBefore = bytesTaken(socket);
    return takenBefore !== before;
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
      leaveToNode();
      res.shouldKeepAlive = false;
      res.assignSocket(socket);
      // Node has removed its own listeners from the socket; `res` needs these two until it is detached.
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
    isIdle,
    onInactive,
    drain() {
      const last = newest();
      if (last !== undefined && !last.hasBegun) endAfter(last);
      else if (intake === 'open') intake = 'last';
    },
    closeWhenIdle() {
      closesWhenIdle = true;
      if (isIdle()) close();
    },
  };
}
