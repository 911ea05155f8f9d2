import { connect, type Socket } from 'node:net';
import { connect as connectTls } from 'node:tls';
import type { Bounds } from '../../shared/timeouts-and-sizes.ts';
import type { ResponseHead } from './response-head.ts';
import { type Reading, ResponseReader } from './response-reader.ts';
import type {
  ActiveConnection,
  BodySink,
  Reach,
  ResponseHandler,
  StreamedBody,
  TargetRequest,
  TransportFailure,
} from './target-request.ts';
import { connectionErrorText, type TargetTls } from './target-tls.ts';

/** The pool of a connection. The pool receives the events of the connection. */
export interface ConnectionOwner {
  onConnected(connection: TargetConnection): void;
  /** Called when the holder's request was answered or failed. */
  onRequestOver(holder: string): void;
  /** Called when the connection may serve another request. */
  onFree(connection: TargetConnection): void;
  /** @param failure the reason why no connection was established; undefined when an established connection closed */
  onClosed(connection: TargetConnection, failure: TransportFailure | undefined): void;
}

interface ConnectionOptions {
  readonly host: string;
  readonly port: number;
  /** The TLS options; undefined for an `http` upstream. */
  readonly tls: TargetTls | undefined;
  readonly bounds: Bounds;
  readonly owner: ConnectionOwner;
}

type State =
  | 'connecting'
  /** The connection is established and serves no request. */
  | 'idle'
  /** A request is written, at least in part. No octet of its response has arrived. */
  | 'awaiting_response'
  | 'receiving'
  /** Reading is paused until the handler calls `resume`. */
  | 'paused'
  /** The connection was established and is closed now. */
  | 'closed';

/**
 * An HTTP/1.1 connection to a target, which serves one request after the other. The connection reads into its own buffer, without
 * Node's streams. A forwarded request took 15 to 20 % more CPU with undici's client.
 * The class is long because reading, writing and the timeouts of one socket share its state.
 */
export class TargetConnection implements ActiveConnection, BodySink {
  private readonly bounds: Bounds;
  private readonly owner: ConnectionOwner;
  private readonly socket: Socket;
  private readonly isSecure: boolean;
  private readonly reader: ResponseReader;
  private readonly connectTimer: NodeJS.Timeout;
  private state: State = 'connecting';
  /** The handler of the current response; undefined while the connection serves no request. */
  private handler: ResponseHandler | undefined;
  /** The key id of the current request. */
  private holder = '';
  /** The number of requests on this connection, including the current request. */
  private requests = 0;
  /** The streamed body of the current request; undefined when all of it is sent. */
  private sending: StreamedBody | undefined;
  private chunked = false;
  /** Whether the target keeps the connection open after the current response. */
  private persistent = false;
  /**
   * The time at which the current wait ends, on the clock of `performance.now`. The connection waits for a response head, for more
   * of a body, or for another request. The pool checks the deadline periodically, because a timer for each wait would be slower.
   */
  private deadlineMs = Number.POSITIVE_INFINITY;
  private idleTimeoutMs: number;
  /** Whether the target no longer reads. Its response may still arrive. */
  private isWriteBroken = false;
  /** The error that ended the connection; undefined without an error. */
  private closeCause: string | undefined;

  constructor({ host, port, tls, bounds, owner }: ConnectionOptions) {
    this.bounds = bounds;
    this.owner = owner;
    this.isSecure = tls !== undefined;
    this.idleTimeoutMs = bounds.upstreamIdleTimeoutMs;
    this.reader = new ResponseReader(bounds, {
      onInterim: (head) => this.handler?.onInterim(head),
      onHead: (head, wholeBody) => this.onHead(head, wholeBody),
      onPiece: (piece) => this.onPiece(piece),
    });
    const buffer = Buffer.allocUnsafeSlow(bounds.upstreamReadBytesMax);
    const to = { host, port, onread: { buffer, callback: (length: number) => this.onRead(buffer, length) } };
    this.socket = tls === undefined ? connect(to) : connectTls({ ...to, ...tls });
    this.socket.setNoDelay(true).setKeepAlive(true);
    outliveWriteErrors(this.socket, (error) => this.onWriteError(error));
    this.connectTimer = setTimeout(() => this.onConnectTimeout(), bounds.connectTimeoutMs);
    this.socket.once(this.isSecure ? 'secureConnect' : 'connect', () => this.onConnect());
    this.socket.on('drain', () => this.sending?.resume());
    this.socket.once('end', () => this.onEnd());
    this.socket.on('error', (error) => (this.closeCause = connectionErrorText(error)));
    this.socket.once('close', () => this.onClose());
  }

  send(request: TargetRequest, handler: ResponseHandler): void {
    const { body, method, holder } = request;
    this.handler = handler;
    this.holder = holder;
    this.requests++;
    this.state = 'awaiting_response';
    handler.onSend(this);
    this.awaitHead();
    this.reader.expect(method);
    if (Buffer.isBuffer(body)) {
      this.socket.cork();
      this.socket.write(headText(request), 'latin1');
      this.socket.write(body);
      this.socket.uncork();
    } else this.socket.write(headText(request), 'latin1');
    if (this.isWriteBroken) {
      // The connection was dead before the request. Octets that the kernel has received on it are no response to this request.
      this.socket.destroy(new Error('the target closed the connection before the request was sent'));
    } else if (body !== undefined && !Buffer.isBuffer(body)) {
      this.sending = body;
      this.chunked = request.chunked;
      body.start(this);
    }
  }

  write(piece: Buffer): boolean {
    // The response was complete before the request body was sent. The rest of the body is dropped.
    if (this.sending === undefined) return true;
    if (this.state === 'awaiting_response') this.awaitHead();
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
    if (this.state === 'awaiting_response') this.awaitHead();
    if (this.chunked) this.socket.write('0\r\n\r\n', 'latin1');
  }

  resume(): void {
    if (this.state !== 'paused') return;
    this.state = 'receiving';
    this.awaitBody();
    this.socket.resume();
  }

  abort(): void {
    this.fail('aborted', 'the request was abandoned');
  }

  /** Closes the connection immediately. The current request fails with `closed`, so the target is not blamed. */
  close(): void {
    this.fail('closed', 'the gateway closed the connection');
  }

  /** Whether an idle connection may be used: it is open, has sent everything, and its idle timeout has not passed. */
  isUsable(): boolean {
    const { destroyed, writableLength } = this.socket;
    return !destroyed && writableLength === 0 && performance.now() < this.deadlineMs;
  }

  /** The key id of the current request, and whether the connection waits for the client of this request. Undefined without a request. */
  use(): { readonly holder: string; readonly awaitsClient: boolean } | undefined {
    if (this.handler === undefined) return undefined;
    return { holder: this.holder, awaitsClient: this.isPaused() || this.awaitsBody() };
  }

  /** Whether the target has taken everything that the client has sent of its body so far. */
  private awaitsBody(): boolean {
    return this.sending !== undefined && !this.socket.writableNeedDrain;
  }

  /** Ends the current wait if it timed out. */
  expire(nowMs: number): void {
    if (nowMs < this.deadlineMs) return;
    if (this.handler === undefined) {
      this.close();
    } else if (this.awaitsBody()) {
      // The client sends its body slowly. The target did not cause this delay. `client-pace.ts` has the limit for slow clients.
      this.awaitHead();
    } else {
      const isAwaited = this.state === 'awaiting_response';
      this.fail(
        'timeout',
        isAwaited ? 'the target sent no response' : 'the target stopped sending its response',
      );
    }
  }

  /**
   * Ends the attempt to connect. After a long pause of the process, the timer may fire before the `connect` event. `setImmediate` therefore
   * delays the check.
   */
  private onConnectTimeout(): void {
    const error = new Error(`no connection within ${this.bounds.connectTimeoutMs} ms`);
    setImmediate(() => {
      if (this.state === 'connecting') this.socket.destroy(error);
    });
  }

  private onConnect(): void {
    clearTimeout(this.connectTimer);
    this.becomeIdle();
    this.owner.onConnected(this);
  }

  /**
   * @returns false to stop reading until `resume`. Over TLS, Node still delivers up to 64 KiB of decrypted octets. `onPiece` therefore gets
   * pieces even after `onPiece` has returned false.
   */
  private onRead(bytes: Buffer, length: number): boolean {
    if (this.handler === undefined) {
      // The target sent octets although no request was open. The next request could read these octets as its response.
      this.close();
      return false;
    }
    if (!this.isPaused()) this.state = 'receiving';
    const reading = this.reader.read(bytes, length);
    // The handler may have aborted the request while it received the octets.
    if (this.handler === undefined) return false;
    this.proceed(reading);
    return !this.isPaused();
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

  private isPaused(): boolean {
    return this.state === 'paused';
  }

  private onHead(head: ResponseHead, wholeBody: string | undefined): void {
    this.persistent = head.persistent;
    if (head.keepAlive !== undefined) this.idleTimeoutMs = this.idleTimeoutOf(head.keepAlive);
    if (wholeBody === undefined) this.awaitBody();
    this.handler?.onHead(head, wholeBody);
  }

  private onPiece(piece: Buffer): void {
    const wantsMore = this.handler?.onPiece(piece);
    if (wantsMore === undefined || this.handler === undefined) return;
    if (wantsMore) {
      this.awaitBody();
      return;
    }
    this.state = 'paused';
    this.deadlineMs = Number.POSITIVE_INFINITY;
  }

  /**
   * Called when a write has failed. A target may respond before it has read the whole request body, and then close its socket. The unread
   * octets cause a reset, which makes the write fail before the response is read (RFC 9112 §9.5). The connection therefore reads on until
   * its end, and drops the rest of the request body.
   */
  private onWriteError(error: NodeJS.ErrnoException): void {
    this.isWriteBroken = true;
    // EPIPE: the target had ended its side before the reset, so the end of a response without a length is its regular end. After another
    // error, the kernel reports an end that the target has not sent.
    if (error.code !== 'EPIPE') this.closeCause = connectionErrorText(error);
    const { sending } = this;
    this.sending = undefined;
    sending?.resume();
  }

  /** Returns half of the announced timeout, so that no request is sent while the target closes the connection. */
  private idleTimeoutOf(keepAlive: string): number {
    const [, seconds] = /\btimeout=([0-9]{1,6})/i.exec(keepAlive) ?? [];
    if (seconds === undefined) return this.bounds.upstreamIdleTimeoutMs;
    return Math.min(Number(seconds) * 500, this.bounds.upstreamIdleTimeoutMaxMs);
  }

  /** Ends the current request when its response is complete. */
  private finish(reusable: boolean): void {
    const { handler } = this;
    // A target may respond before it has read the whole request body. A target that has not read the whole body could read the rest as the
    // next request. Node reports TLS writes one turn late, so `isUsable` checks again whether the whole request was sent.
    const isSent =
      this.sending === undefined &&
      !this.isWriteBroken &&
      (this.isSecure || this.socket.writableLength === 0);
    // Over TLS, the rest of a response may still arrive after reading is paused (see `onRead`).
    if (this.isPaused()) this.socket.resume();
    this.handler = undefined;
    this.sending = undefined;
    this.owner.onRequestOver(this.holder);
    if (reusable && isSent && this.idleTimeoutMs > 0) {
      this.becomeIdle();
      this.owner.onFree(this);
    } else this.close();
    handler?.onEnd();
  }

  private becomeIdle(): void {
    this.state = 'idle';
    this.deadlineMs = performance.now() + this.idleTimeoutMs;
  }

  /** Closes the connection and makes the current request fail. */
  private fail(kind: TransportFailure['kind'], cause: string): void {
    const { handler } = this;
    const reach = this.reach();
    if (this.state !== 'connecting') this.state = 'closed';
    this.handler = undefined;
    this.sending = undefined;
    this.socket.destroy();
    if (handler === undefined) return;
    this.owner.onRequestOver(this.holder);
    handler.onFailure({ kind, reach, cause });
  }

  /** Returns how far the current request got. */
  private reach(): Reach {
    if (this.state !== 'awaiting_response') return 'answering';
    return this.requests > 1 ? 'unanswered_reused' : 'unanswered_fresh';
  }

  /** Called when the target has ended its side of the connection. */
  private onEnd(): void {
    if (this.handler === undefined) this.close();
    // Node reports a TLS fault as an error event, followed by an end event.
    else if (this.closeCause !== undefined) this.fail('lost', this.closeCause);
    else if (this.reader.isCompletedByEnd()) this.finish(false);
    else this.fail('lost', 'the target closed the connection before its response was complete');
  }

  private onClose(): void {
    clearTimeout(this.connectTimer);
    const cause = this.closeCause ?? 'the connection was closed';
    this.fail('lost', cause);
    const failure: TransportFailure = { kind: 'connect', reach: 'not_reached', cause };
    this.owner.onClosed(this, this.state === 'connecting' ? failure : undefined);
  }

  private awaitHead(): void {
    this.deadlineMs = performance.now() + this.bounds.upstreamHeadersTimeoutMs;
  }

  private awaitBody(): void {
    this.deadlineMs = performance.now() + this.bounds.upstreamBodyIdleTimeoutMs;
  }
}

type WriteDone = (error?: Error | null) => void;

/**
 * Reports failed writes to `onError` instead of to Node's stream. Node would destroy the socket, and with it the received octets that are
 * not read yet. To the stream, the failed write and all later writes look successful.
 */
function outliveWriteErrors(socket: Socket, onError: (error: Error) => void): void {
  let isBroken = false;
  const outlived =
    (done: WriteDone): WriteDone =>
    (error) => {
      if (error && !isBroken && !socket.destroyed) {
        isBroken = true;
        onError(error);
      }
      done();
    };
  const { _write, _writev } = socket;
  socket._write = (chunk, encoding, done) => {
    if (isBroken) done();
    else _write.call(socket, chunk, encoding, outlived(done));
  };
  socket._writev = (chunks, done) => {
    if (isBroken) done();
    else _writev?.call(socket, chunks, outlived(done));
  };
}

function headText({ method, path, fields, chunked }: TargetRequest): string {
  let text = `${method} ${path} HTTP/1.1\r\n`;
  for (let i = 0; i < fields.length; i += 2) text += `${fields[i]}: ${fields[i + 1]}\r\n`;
  // The connection is not reused after HEAD: see `mayBeFollowed` in `response-head.ts`.
  if (method === 'HEAD') text += 'Connection: close\r\n';
  return chunked ? `${text}Transfer-Encoding: chunked\r\n\r\n` : `${text}\r\n`;
}
