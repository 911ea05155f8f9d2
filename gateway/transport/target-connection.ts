import { connect, type Socket } from 'node:net';
import type { ResponseHead } from './response-head.ts';
import { type Reading, type ResponseBounds, ResponseReader } from './response-reader.ts';
import type {
  BodySink,
  Reach,
  ResponseHandler,
  StreamedBody,
  TargetConnection,
  TargetRequest,
  TransportFailure,
} from './target-request.ts';

/** The waits and sizes of a connection; what they bound is told in `timeouts-and-sizes.ts`. */
export interface ConnectionBounds extends ResponseBounds {
  readonly connectTimeoutMs: number;
  readonly upstreamHeadersTimeoutMs: number;
  readonly upstreamBodyIdleTimeoutMs: number;
  readonly upstreamReadBytesMax: number;
  readonly upstreamIdleTimeoutMs: number;
  readonly upstreamIdleTimeoutMaxMs: number;
}

export interface ConnectionOwner {
  onConnected(connection: Connection): void;
  /** The request on it was answered or failed. */
  onRequestOver(holder: string): void;
  /** It may serve the next request. */
  onFree(connection: Connection): void;
  /** @param failure why it did not come about; undefined when it did once */
  onClosed(connection: Connection, failure: TransportFailure | undefined): void;
}

interface ConnectionOptions {
  readonly host: string;
  readonly port: number;
  readonly bounds: ConnectionBounds;
  readonly owner: ConnectionOwner;
}

/**
 * One HTTP/1.1 connection to a target, one request after the other. It reads into a buffer of its own and looks at the
 * octets there, past the streams of Node: with undici's client in its place a forwarded request takes 15 to 20 % more CPU.
 */
export class Connection implements TargetConnection, BodySink {
  private readonly bounds: ConnectionBounds;
  private readonly owner: ConnectionOwner;
  private readonly socket: Socket;
  private readonly reader: ResponseReader;
  private readonly connectTimer: NodeJS.Timeout;
  private connected = false;
  private handler: ResponseHandler | undefined;
  /** Of the request under way. */
  private holder = '';
  private requests = 0;
  /** Of the request under way, while its body is being sent. */
  private sending: StreamedBody | undefined;
  private chunked = false;
  private answering = false;
  private persistent = false;
  private paused = false;
  /** When what it waits for must have come, an idle connection its end; on the clock of `performance.now`. */
  private deadlineMs = Number.POSITIVE_INFINITY;
  private idleTimeoutMs: number;
  private closeCause = 'the connection was closed';

  constructor({ host, port, bounds, owner }: ConnectionOptions) {
    this.bounds = bounds;
    this.owner = owner;
    this.idleTimeoutMs = bounds.upstreamIdleTimeoutMs;
    this.reader = new ResponseReader(bounds, {
      onInterim: (head) => this.handler?.onInterim(head),
      onHead: (head, wholeBody) => this.onHead(head, wholeBody),
      onPiece: (piece) => this.onPiece(piece),
    });
    const buffer = Buffer.allocUnsafeSlow(bounds.upstreamReadBytesMax);
    this.socket = connect({
      host,
      port,
      noDelay: true,
      keepAlive: true,
      onread: { buffer, callback: (length) => this.onRead(buffer, length) },
    });
    this.connectTimer = setTimeout(() => this.onLate(), bounds.connectTimeoutMs);
    this.socket.once('connect', () => this.onConnect());
    this.socket.on('drain', () => this.sending?.resume());
    this.socket.once('end', () => this.onEnd());
    this.socket.on('error', (error) => (this.closeCause = error.message));
    this.socket.once('close', () => this.onClose());
  }

  send(request: TargetRequest, handler: ResponseHandler): void {
    const { body, method, holder } = request;
    this.handler = handler;
    this.holder = holder;
    this.requests++;
    handler.onSend(this);
    this.answering = false;
    this.awaitHead();
    this.reader.expect(method);
    if (body === undefined) {
      this.socket.write(headText(request), 'latin1');
    } else if (Buffer.isBuffer(body)) {
      this.socket.cork();
      this.socket.write(headText(request), 'latin1');
      this.socket.write(body);
      this.socket.uncork();
    } else {
      this.sending = body;
      this.chunked = request.chunked;
      this.socket.write(headText(request), 'latin1');
      body.start(this);
    }
  }

  write(piece: Buffer): boolean {
    // The answer came first, and nothing more of the body is wanted.
    if (this.sending === undefined) return true;
    if (!this.answering) this.awaitHead();
    if (!this.chunked) return this.socket.write(piece);
    this.socket.cork();
    this.socket.write(`${piece.length.toString(16)}\r\n`, 'latin1');
    this.socket.write(piece);
    const hasRoom = this.socket.write('\r\n', 'latin1');
    this.socket.uncork();
    return hasRoom;
  }

  end(): void {
    if (this.sending === undefined) return;
    this.sending = undefined;
    if (!this.answering) this.awaitHead();
    if (this.chunked) this.socket.write('0\r\n\r\n', 'latin1');
  }

  resume(): void {
    if (!this.paused) return;
    this.paused = false;
    this.awaitBody();
    this.socket.resume();
  }

  abort(): void {
    this.fail('aborted', 'nobody waits for the answer');
  }

  /** Cuts it; a request under way fails, not by the backend's fault. */
  close(): void {
    this.fail('closed', 'this side closed the connection');
  }

  /** An idle one may be closed, or past its time and not looked at yet. */
  isUsable(): boolean {
    return !this.socket.destroyed && performance.now() < this.deadlineMs;
  }

  /** Fails or closes it when its time is over. */
  expire(nowMs: number): void {
    if (nowMs < this.deadlineMs) return;
    if (this.handler === undefined) {
      this.close();
    } else if (this.sending !== undefined && !this.socket.writableNeedDrain) {
      // It is the client that takes its time with the body, and the listener has a limit for that.
      this.awaitHead();
    } else {
      this.fail('timeout', this.answering ? 'the answer stopped coming' : 'no answer came');
    }
  }

  /** After SIGSTOP or a long pause the timer fires before the connection is seen made, so the look is one turn later. */
  private onLate(): void {
    const { connectTimeoutMs } = this.bounds;
    setImmediate(() => {
      if (!this.connected) this.socket.destroy(new Error(`no connection within ${connectTimeoutMs} ms`));
    });
  }

  private onConnect(): void {
    clearTimeout(this.connectTimer);
    this.connected = true;
    this.rest();
    this.owner.onConnected(this);
  }

  /** @returns false to have no more read until `resume` */
  private onRead(bytes: Buffer, length: number): boolean {
    if (this.handler === undefined) {
      // Nothing was asked: what it says next could be taken for the answer to somebody's request.
      this.close();
      return false;
    }
    this.answering = true;
    const reading = this.reader.read(bytes, length);
    // Whoever heard of it may have given it up.
    if (this.handler === undefined) return false;
    this.proceed(reading);
    return !this.paused;
  }

  private proceed(reading: Reading): void {
    switch (reading.kind) {
      case 'open':
        return;
      case 'complete':
        this.finish(this.persistent);
        return;
      case 'surplus':
        this.finish(false);
        return;
      case 'malformed':
        this.fail('malformed', reading.cause);
    }
  }

  private onHead(head: ResponseHead, wholeBody: string | undefined): void {
    this.persistent = head.persistent;
    if (head.keepAlive !== undefined) this.idleTimeoutMs = this.idleTimeoutOf(head.keepAlive);
    if (wholeBody === undefined) this.awaitBody();
    this.handler?.onHead(head, wholeBody);
  }

  private onPiece(piece: Buffer): void {
    if (this.handler?.onPiece(piece) === false) {
      this.paused = true;
      this.deadlineMs = Number.POSITIVE_INFINITY;
    } else this.awaitBody();
  }

  /** Half of what the backend announces: a request must not meet a connection that it is just closing. */
  private idleTimeoutOf(keepAlive: string): number {
    const [, seconds] = /\btimeout=([0-9]{1,6})/i.exec(keepAlive) ?? [];
    if (seconds === undefined) return this.bounds.upstreamIdleTimeoutMs;
    return Math.min(Number(seconds) * 500, this.bounds.upstreamIdleTimeoutMaxMs);
  }

  private finish(reusable: boolean): void {
    const { handler } = this;
    // What the backend did not read of a body would stand before the next request.
    const isSent = this.sending === undefined && this.socket.writableLength === 0;
    this.handler = undefined;
    this.sending = undefined;
    this.paused = false;
    this.owner.onRequestOver(this.holder);
    if (reusable && isSent && this.idleTimeoutMs > 0) {
      this.rest();
      this.owner.onFree(this);
    } else this.close();
    handler?.onEnd();
  }

  private rest(): void {
    this.deadlineMs = performance.now() + this.idleTimeoutMs;
  }

  private fail(kind: TransportFailure['kind'], cause: string): void {
    const { handler } = this;
    this.handler = undefined;
    this.sending = undefined;
    this.socket.destroy();
    if (handler === undefined) return;
    this.owner.onRequestOver(this.holder);
    handler.onFailure({ kind, reach: this.reach(), cause });
  }

  private reach(): Reach {
    if (this.answering) return 'answering';
    return this.requests > 1 ? 'unanswered_reused' : 'unanswered_fresh';
  }

  /** The other side sends nothing more. */
  private onEnd(): void {
    if (this.handler === undefined) this.close();
    else if (this.reader.isCompletedByEnd()) this.finish(false);
    else this.fail('lost', 'the backend closed the connection before its answer was complete');
  }

  private onClose(): void {
    clearTimeout(this.connectTimer);
    this.fail('lost', this.closeCause);
    const failure: TransportFailure = { kind: 'connect', reach: 'not_reached', cause: this.closeCause };
    this.owner.onClosed(this, this.connected ? undefined : failure);
  }

  private awaitHead(): void {
    this.deadlineMs = performance.now() + this.bounds.upstreamHeadersTimeoutMs;
  }

  private awaitBody(): void {
    this.deadlineMs = performance.now() + this.bounds.upstreamBodyIdleTimeoutMs;
  }
}

function headText({ method, path, fields, chunked }: TargetRequest): string {
  let text = `${method} ${path} HTTP/1.1\r\n`;
  for (let i = 0; i < fields.length; i += 2) text += `${fields[i]}: ${fields[i + 1]}\r\n`;
  // Some backends send a body in answer to HEAD, so that connection serves no other request.
  if (method === 'HEAD') text += 'Connection: close\r\n';
  return chunked ? `${text}Transfer-Encoding: chunked\r\n\r\n` : `${text}\r\n`;
}
