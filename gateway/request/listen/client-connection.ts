import type { IncomingMessage } from 'node:http';
import type { Socket } from 'node:net';
import { TLSSocket } from 'node:tls';
import type { Rejection } from '../../shared/errors.ts';
import { http } from '../../shared/http/node-http.ts';
import { startDeadline } from '../../shared/structures/within-deadline.ts';
import type { Bounds } from '../../shared/timeouts-and-sizes.ts';
import { bytesTaken } from '../../shared/tls/bytes-taken.ts';
import { ClientResponse } from '../respond/client-response.ts';
import { closeInsteadOfDestroy, dropRequests } from './node-patches.ts';

interface ConnectionOptions {
  readonly socket: Socket;
  /** Starts to serve a request. For refused input, the function starts to send the error response. Never throws. */
  readonly serve: (res: ClientResponse) => void;
  readonly bounds: Bounds;
}

type State =
  /** `new`: no request has arrived yet. `idle`: all requests have been answered. */
  | { readonly kind: 'new' | 'idle' }
  | { readonly kind: 'serving'; readonly res: ClientResponse }
  /** The request was answered before its whole body had arrived. The next request follows after the rest of the body. */
  | { readonly kind: 'awaiting_body'; readonly req: IncomingMessage }
  /** The socket belongs to the code that forwards WebSockets. */
  | { readonly kind: 'handed_over' }
  /** The connection serves no further request and writes nothing more. */
  | { readonly kind: 'closed' };

/**
 * Controls the order of requests, the timeouts and the end of a client's connection. Pipelined requests are served one after the other, as
 * in nginx. Node itself would emit all pipelined requests at the same time. If one response closed the connection, the later requests would
 * be charged and forwarded, but could not get responses.
 */
export class ClientConnection {
  readonly socket: Socket;
  private readonly serve: (res: ClientResponse) => void;
  private readonly bounds: Bounds;
  /** Restores Node's own function that closes the connection. This class has replaced that function. */
  private readonly leaveToNode: () => void;
  private state: State = { kind: 'new' };
  /** How many further requests are accepted: any number (`open`), one (`last`), or none. */
  private intake: 'open' | 'last' | 'none' = 'open';
  private closesWhenIdle = false;
  /** Whether the client has closed its sending side, and still gets the responses to its requests. */
  private isHalfClosed = false;
  /** Pipelined requests that wait for the current request. */
  private readonly waiting: ClientResponse[] = [];
  /** Whether reading is paused. Reading pauses while requests wait, and when a request is dropped. */
  private isPaused = false;
  private arrived = 0;
  /** A request timeout of Node that fired while this class had paused reading. */
  private unfairTimeout: Rejection | undefined;
  /** The time from the last sent or received octet to the last measurement. */
  private inactiveMs = 0;
  private bytesMoved = 0;
  /** The number of octets that the kernel had accepted at the last measurement. */
  private takenBefore = 0;
  /** How long the client may take to read the octets that the kernel has accepted before the client became inactive. */
  private readAllowanceMs = 0;

  constructor({ socket, serve, bounds }: ConnectionOptions) {
    this.socket = socket;
    this.serve = serve;
    this.bounds = bounds;
    this.leaveToNode = closeInsteadOfDestroy(socket, () => this.close());
  }

  /** Receives a request. The request is served when the earlier requests have been answered. */
  receive(res: ClientResponse): void {
    if (this.state.kind === 'closed') return;
    this.arrived++;
    if (this.intake === 'none') {
      // Requests after the last accepted request are dropped, and reading stops.
      dropRequests(this.socket);
      if (!this.isPaused) setImmediate(() => this.pauseReading());
      this.isPaused = true;
      return;
    }
    const isLast = this.intake === 'last' || isOld(res.req);
    if (isLast || this.waiting.length + 1 === this.bounds.pipelinedMax) this.endAfter(res);
    if (this.state.kind !== 'serving') {
      this.begin(res);
      return;
    }
    this.waiting.push(res);
    // Pauses one turn later, because the parser resumes the socket at the end of each request in the current packet.
    setImmediate(() => this.pauseWhileWaiting());
  }

  /**
   * Handles input that the parser has refused. If the body of the newest request is incomplete, the fault is in that body. If the body is
   * complete, the error response is sent after the responses to earlier requests, and the connection is then closed.
   *
   * @param options.isHead whether the refused request was a HEAD; the response to a HEAD has no body
   */
  reject(rejection: Rejection, { isHead }: { readonly isHead: boolean }): void {
    const { state, socket } = this;
    if (state.kind === 'closed' || socket.destroyed) return;
    if (this.isPaused && rejection.code === 'request_timeout') {
      this.unfairTimeout = rejection;
      return;
    }
    const faulty = this.newest();
    if (faulty?.req.complete === false) {
      this.intake = 'none';
      socket.pause();
      faulty.reject(rejection);
    } else if (state.kind === 'awaiting_body' && !state.req.complete) {
      this.close();
    } else if (this.intake !== 'none') {
      // Input after the last accepted request gets no response.
      socket.pause();
      this.receive(responseTo(socket, rejection, isHead));
      this.intake = 'none';
    }
  }

  /** Stops reading. Requests that have already arrived are still served. */
  stopReceiving(): void {
    this.intake = 'none';
    this.socket.pause();
  }

  /** Accepts exactly one further request. Node drops all octets after a request whose `Upgrade` it ignores. */
  receiveLast(): void {
    if (this.intake === 'open') this.intake = 'last';
  }

  /** Gives the socket to the code that forwards WebSockets. `res` can still write a response other than 101. */
  handOver(res: ClientResponse): void {
    const { socket } = this;
    this.state = { kind: 'handed_over' };
    this.intake = 'none';
    this.leaveToNode();
    res.shouldKeepAlive = false;
    res.assignSocket(socket);
    // Node has removed its own listeners from the socket. `res` needs the following two listeners until it is detached.
    socket.setTimeout(this.bounds.writeTimeoutMs);
    socket.on('timeout', () => res.socket === socket && this.onInactive());
    socket.on('drain', () => res.socket === socket && res.emit('drain'));
    res.once('finish', () => closeGently(socket, this.bounds));
  }

  isNew(): boolean {
    return this.state.kind === 'new';
  }

  /** Whether the connection has no unanswered request. */
  isIdle(): boolean {
    const { kind } = this.state;
    return kind === 'new' || kind === 'idle' || kind === 'awaiting_body';
  }

  /**
   * Called when the client has closed its sending side. The client may have left, or may wait for its responses. After the last response the
   * connection is closed.
   */
  onHalfClosed(): void {
    const last = this.newest();
    if (last === undefined) return;
    this.isHalfClosed = true;
    if (!last.hasBegun) this.endAfter(last);
    this.inactiveMs = 0;
    this.bytesMoved = this.socket.bytesRead + this.socket.bytesWritten;
    this.socket.setTimeout(Math.min(this.bounds.halfClosedTimeoutMs, this.bounds.writeTimeoutMs));
  }

  /** Called by the socket's timer when no octet was sent or received for some time. */
  onInactive(): void {
    const { bytesRead, bytesWritten, timeout: elapsedMs = 0, writableLength } = this.socket;
    const { writeTimeoutMs, keepAliveTimeoutMs, halfClosedTimeoutMs } = this.bounds;
    const { clientBytesPerSecondMin, clientReadAheadMaxMs } = this.bounds;
    const taken = bytesTaken(this.socket);
    const burst = taken - this.takenBefore;
    this.takenBefore = taken;
    const isUnmoved = burst === 0 && bytesRead + bytesWritten === this.bytesMoved;
    this.bytesMoved = bytesRead + bytesWritten;
    if (burst > 0) {
      // A small burst may follow a large burst that the client is still reading.
      const restMs = Math.max(this.readAllowanceMs - this.inactiveMs, 0);
      const burstMs = (burst * 1000) / clientBytesPerSecondMin;
      this.readAllowanceMs = Math.min(restMs + burstMs, clientReadAheadMaxMs);
    }
    // The timer of a TLS socket restarts only after a whole write, so it also fires while the client reads.
    if (writableLength > 0 && burst > 0 && this.socket instanceof TLSSocket) this.inactiveMs = 0;
    else this.inactiveMs = isUnmoved ? this.inactiveMs + elapsedMs : elapsedMs;
    const isServing = this.state.kind === 'serving' || this.state.kind === 'handed_over';
    const isWaiting = !isServing || writableLength > 0 || this.isHalfClosed;
    const readTimeoutMs = Math.max(writeTimeoutMs, this.readAllowanceMs);
    const servingTimeoutMs = writableLength > 0 ? readTimeoutMs : halfClosedTimeoutMs;
    const leftMs = (isServing ? servingTimeoutMs : keepAliveTimeoutMs) - this.inactiveMs;
    // Closes idle connections, connections whose client does not read, and connections whose client has probably left. Slow upstreams and
    // slow bodies have separate timeouts.
    if (isWaiting && leftMs <= 0) this.socket.destroy();
    else this.socket.setTimeout(isWaiting ? Math.min(leftMs, writeTimeoutMs) : writeTimeoutMs);
  }

  /**
   * Starts a graceful stop. The last response gets `Connection: close`. If the head of the last response is already sent, one more request
   * is served.
   */
  drain(): void {
    const last = this.newest();
    if (last !== undefined && !last.hasBegun) this.endAfter(last);
    else this.receiveLast();
  }

  closeWhenIdle(): void {
    this.closesWhenIdle = true;
    if (this.isIdle()) this.close();
  }

  private begin(res: ClientResponse): void {
    this.state = { kind: 'serving', res };
    res.keepAliveSeconds = this.bounds.keepAliveAnnouncedSeconds;
    if (res.socket === null) this.attach(res);
    res.on('close', () => this.onAnswered());
    this.serve(res);
  }

  /** Assigns the socket to a response that reports refused input. Node itself assigns the socket to all other responses. */
  private attach(res: ClientResponse): void {
    res.assignSocket(this.socket);
    res.once('finish', () => {
      res.detachSocket(this.socket);
      this.close();
    });
  }

  private onAnswered(): void {
    if (this.state.kind !== 'serving' || this.socket.destroyed) return;
    const { res } = this.state;
    if (!res.shouldKeepAlive) this.close();
    else if (!res.req.complete) this.state = { kind: 'awaiting_body', req: res.req };
    else this.serveNext();
  }

  private serveNext(): void {
    const next = this.waiting.shift();
    if (next === undefined) {
      this.state = { kind: 'idle' };
      if (this.intake === 'none' || this.closesWhenIdle) this.close();
      else this.resumeReading();
      return;
    }
    if (!next.req.complete) this.resumeReading(next.req);
    this.begin(next);
  }

  /**
   * Pauses reading while requests wait. The pause also delays the client's FIN, because Node would treat the FIN as the end of the
   * connection.
   */
  private pauseWhileWaiting(): void {
    if (this.waiting.length > 0) this.pauseReading();
  }

  private pauseReading(): void {
    if (this.state.kind === 'closed') return;
    this.isPaused = true;
    this.socket.pause();
  }

  /** @param arriving the request whose body is read next; undefined when a head is read next */
  private resumeReading(arriving?: IncomingMessage): void {
    if (!this.isPaused) return;
    this.isPaused = false;
    this.socket.resume();
    if (this.unfairTimeout !== undefined) this.restartTimeout(this.unfairTimeout, arriving);
    this.unfairTimeout = undefined;
  }

  /** Restarts the timeout of the request that is arriving, because Node's timeout also runs while reading is paused. */
  private restartTimeout(rejection: Rejection, arriving: IncomingMessage | undefined): void {
    const arrivedBefore = this.arrived;
    const stop = startDeadline(this.bounds.requestTimeoutMs, () => {
      this.socket.off('close', stop);
      const isHere = arriving === undefined ? this.arrived > arrivedBefore : arriving.complete;
      if (!isHere) this.reject(rejection, { isHead: false });
    });
    this.socket.once('close', stop);
  }

  /** Makes `res` the last response of the connection. */
  private endAfter(res: ClientResponse): void {
    res.shouldKeepAlive = false;
    this.intake = 'none';
  }

  private newest(): ClientResponse | undefined {
    return this.waiting.at(-1) ?? (this.state.kind === 'serving' ? this.state.res : undefined);
  }

  private close(): void {
    if (this.state.kind === 'closed') return;
    this.state = { kind: 'closed' };
    closeGently(this.socket, this.bounds);
  }
}

/** Makes the response to input that the parser has refused. */
function responseTo(socket: Socket, rejection: Rejection, isHead: boolean): ClientResponse {
  const req = new http.IncomingMessage(socket);
  req.complete = true;
  if (isHead) req.method = 'HEAD';
  const res = new ClientResponse(req);
  res.reject(rejection);
  return res;
}

/** Whether a request is HTTP/1.0 without keep-alive (RFC 9112 §9.3). Node's `shouldKeepAlive` also obeys `Proxy-Connection`. */
function isOld({ httpVersionMinor, headers }: IncomingMessage): boolean {
  return httpVersionMinor === 0 && headers.connection?.toLowerCase() !== 'keep-alive';
}

/**
 * Closes a connection whose client may still be sending (RFC 9112 §9.6). After the pending writes, the function ends the gateway's side of
 * the connection. It discards input until the client closes its side. After an immediate close, further input would cause a reset, and the
 * client could lose the response. At most `lingerBytesMax` octets are read, and the socket is destroyed after `lingerTimeoutMs`.
 */
function closeGently(socket: Socket, { lingerBytesMax, lingerTimeoutMs }: Bounds): void {
  // Node's server removes its own pause and resume listeners when a `data` listener is added. The socket is therefore resumed
  // before the `data` listener of `discardInput` is added.
  socket.once('resume', () => discardInput(socket, lingerBytesMax));
  socket.pause();
  socket.resume();
  socket.end();
  const timer = setTimeout(() => socket.destroy(), lingerTimeoutMs);
  socket.once('close', () => clearTimeout(timer));
}

/** Discards further input, so that the parser finds no request after the last response. */
function discardInput(socket: Socket, bytesMax: number): void {
  let bytesLeft = bytesMax;
  socket.removeAllListeners('data');
  socket.on('data', (chunk: Buffer) => {
    bytesLeft -= chunk.length;
    if (bytesLeft <= 0) socket.pause();
  });
}
