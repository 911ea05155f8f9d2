import { IncomingMessage } from 'node:http';
import type { Socket } from 'node:net';
import { TLSSocket } from 'node:tls';
import type { Rejection } from '../../shared/errors.ts';
import { startDeadline } from '../../shared/structures/within-deadline.ts';
import type { Bounds } from '../../shared/timeouts-and-sizes.ts';
import { bytesTaken } from '../../shared/tls/bytes-taken.ts';
import { ClientResponse } from '../respond/client-response.ts';
import { closeInsteadOfDestroy, dropRequests } from './node-patches.ts';

interface ConnectionOptions {
  readonly socket: Socket;
  /** Begins to serve a request or a rejection. Never throws. */
  readonly serve: (res: ClientResponse) => void;
  readonly bounds: Bounds;
}

type State =
  /** `new`: no request has arrived yet; `idle`: all requests are answered. */
  | { readonly kind: 'new' | 'idle' }
  | { readonly kind: 'serving'; readonly res: ClientResponse }
  /** The request was answered before its body was complete. The next request follows the rest of the body. */
  | { readonly kind: 'awaiting_body'; readonly req: IncomingMessage }
  /** The forwarder of upgrades has the socket. */
  | { readonly kind: 'handed_over' }
  /** No more requests are served and no more is written. */
  | { readonly kind: 'closed' };

/**
 * A connection of a client: the order of its requests, its timeouts, and how it is closed. Its requests are served one after the
 * other, as in nginx. Node hands out all requests that a client has pipelined at once. If the refusal of one ends
 * the connection, the later ones would still be charged and forwarded, though their responses can never be sent.
 */
export class ClientConnection {
  readonly socket: Socket;
  private readonly serve: (res: ClientResponse) => void;
  private readonly bounds: Bounds;
  /** Undoes the change of the socket. */
  private readonly leaveToNode: () => void;
  private state: State = { kind: 'new' };
  /** How many more requests are accepted: any number, one, or none. */
  private intake: 'open' | 'last' | 'none' = 'open';
  private closesWhenIdle = false;
  /** Pipelined requests behind the current one. */
  private readonly waiting: ClientResponse[] = [];
  /** Reading is paused because requests wait, or because the last request has arrived. */
  private isPaused = false;
  /** The number of requests that have arrived. */
  private arrived = 0;
  /** Node's timeout of a request, which passed while reading was paused. */
  private unfairTimeout: Rejection | undefined;
  /** For how long neither side has moved an octet, and how many octets both had moved at that measurement. */
  private inactiveMs = 0;
  private bytesMoved = 0;
  /** Over TLS: the octets that the kernel had taken at the last measurement. */
  private takenBefore = 0;

  constructor({ socket, serve, bounds }: ConnectionOptions) {
    this.socket = socket;
    this.serve = serve;
    this.bounds = bounds;
    this.leaveToNode = closeInsteadOfDestroy(socket, () => this.close());
  }

  /** A request has arrived. It is served when the requests before it have been answered. */
  receive(res: ClientResponse): void {
    if (this.state.kind === 'closed') return;
    this.arrived++;
    if (this.intake === 'none') {
      // Requests behind the last one are not served, so they are dropped and no more is read.
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
    // One turn later: the parser resumes the socket at the end of each request in the current packet.
    setImmediate(() => this.pauseWhileWaiting());
  }

  /**
   * The parser has refused what the client sent. If the body of the newest request is incomplete, the fault is in that body.
   * Otherwise the rejection is served like a further request, the last one.
   *
   * @param options.isHead whether the refused request was a HEAD: its response has no body
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
      // A rejection behind the last request is not answered.
      socket.pause();
      this.receive(responseTo(socket, rejection, isHead));
      this.intake = 'none';
    }
  }

  /** Serves no request beyond those received so far. */
  stopReceiving(): void {
    this.intake = 'none';
    this.socket.pause();
  }

  /** Serves exactly one more request, because Node drops the octets behind a request whose `Upgrade` it ignores. */
  receiveLast(): void {
    if (this.intake === 'open') this.intake = 'last';
  }

  /** Gives the socket to the forwarder of upgrades. `res` is for a response other than 101. */
  handOver(res: ClientResponse): void {
    const { socket } = this;
    this.state = { kind: 'handed_over' };
    this.intake = 'none';
    this.leaveToNode();
    res.shouldKeepAlive = false;
    res.assignSocket(socket);
    // Node has removed its own listeners from the socket. `res` needs these two until it is detached.
    socket.setTimeout(this.bounds.writeTimeoutMs);
    socket.on('timeout', () => res.socket === socket && this.onInactive());
    socket.on('drain', () => res.socket === socket && res.emit('drain'));
    res.once('finish', () => closeGently(socket, this.bounds));
  }

  /** Whether no request has arrived yet. */
  isNew(): boolean {
    return this.state.kind === 'new';
  }

  /** Whether no request is served or waits. */
  isIdle(): boolean {
    const { kind } = this.state;
    return kind === 'new' || kind === 'idle' || kind === 'awaiting_body';
  }

  /** Called by the socket's timer, after a time in which neither side has moved an octet. */
  onInactive(): void {
    const { bytesRead, bytesWritten, timeout: elapsedMs = 0, writableLength } = this.socket;
    const { writeTimeoutMs, keepAliveTimeoutMs } = this.bounds;
    const isUnmoved = bytesRead + bytesWritten === this.bytesMoved;
    this.bytesMoved = bytesRead + bytesWritten;
    if (writableLength > 0 && this.isTakenOverTls()) this.inactiveMs = 0;
    else this.inactiveMs = isUnmoved ? this.inactiveMs + elapsedMs : elapsedMs;
    const isServing = this.state.kind === 'serving' || this.state.kind === 'handed_over';
    const isWaiting = !isServing || writableLength > 0;
    const leftMs = (isServing ? writeTimeoutMs : keepAliveTimeoutMs) - this.inactiveMs;
    // Ends idle connections and clients that do not read. Silent upstreams and slow bodies have their own timeouts.
    if (isWaiting && leftMs <= 0) this.socket.destroy();
    else this.socket.setTimeout(isWaiting ? Math.min(leftMs, writeTimeoutMs) : writeTimeoutMs);
  }

  /** Begins a drain: the last response has `Connection: close`. If it has begun without that field, one more request is served. */
  drain(): void {
    const last = this.newest();
    if (last !== undefined && !last.hasBegun) this.endAfter(last);
    else this.receiveLast();
  }

  /** Ends the connection as soon as no request is served or waits. */
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

  /** For the response to a rejection. Node attaches the responses that it has made itself. */
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

  /** The end of the client's side stays unread too, because Node would take it for the end of both sides. */
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

  /** Gives the arriving request its whole time again, because Node's clock did not stop while reading was paused. */
  private restartTimeout(rejection: Rejection, arriving: IncomingMessage | undefined): void {
    const arrivedBefore = this.arrived;
    const stop = startDeadline(this.bounds.requestTimeoutMs, () => {
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

  /**
   * Whether the client has read on since the last measurement. Over TLS the socket's timer restarts only after a whole write,
   * so a client that stops reading is disconnected after up to twice the timeout.
   */
  private isTakenOverTls(): boolean {
    if (!(this.socket instanceof TLSSocket)) return false;
    const before = this.takenBefore;
    this.takenBefore = bytesTaken(this.socket);
    return this.takenBefore !== before;
  }
}

/** The response to input that the parser has not accepted as a request. */
function responseTo(socket: Socket, rejection: Rejection, isHead: boolean): ClientResponse {
  const req = new IncomingMessage(socket);
  req.complete = true;
  if (isHead) req.method = 'HEAD';
  const res = new ClientResponse(req);
  res.reject(rejection);
  return res;
}

/** Whether it is HTTP/1.0 without keep-alive (RFC 9112 §9.3). Node's `shouldKeepAlive` also heeds `Proxy-Connection`. */
function isOld({ httpVersionMinor, headers }: IncomingMessage): boolean {
  return httpVersionMinor === 0 && headers.connection?.toLowerCase() !== 'keep-alive';
}

/**
 * Closes a connection whose client may still be sending (RFC 9112 §9.6). Ends our side after the pending writes, and discards
 * input until the client closes its side too. If the socket were destroyed at once, a reset would answer that input, and the
 * client could lose the response. Reads at most `lingerBytesMax`, and destroys the socket after `lingerTimeoutMs`.
 */
function closeGently(socket: Socket, { lingerBytesMax, lingerTimeoutMs }: Bounds): void {
  // As soon as another listener for data is added, Node's server removes its own listeners, which pause and resume the socket.
  // So the socket is resumed first.
  socket.once('resume', () => discardInput(socket, lingerBytesMax));
  socket.pause();
  socket.resume();
  socket.end();
  const timer = setTimeout(() => socket.destroy(), lingerTimeoutMs);
  socket.once('close', () => clearTimeout(timer));
}

/** Takes the input from the parser, because no request is served behind the last response. */
function discardInput(socket: Socket, bytesMax: number): void {
  let bytesLeft = bytesMax;
  socket.removeAllListeners('data');
  socket.on('data', (chunk: Buffer) => {
    bytesLeft -= chunk.length;
    if (bytesLeft <= 0) socket.pause();
  });
}
