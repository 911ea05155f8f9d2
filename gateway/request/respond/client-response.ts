import { ServerResponse } from 'node:http';
import type { Rejection, WholeResponse } from '../../shared/errors.ts';
import { interimMessage, keepAliveValue, reasonPhrase, responseMessage } from './response-message.ts';

/**
 * The one writer of heads to a client: of responses whose body follows (`begin`), of whole ones (`answer`), of interim
 * responses and of the 101. What depends on the connection (`Date`, `Connection`, `Keep-Alive`) is decided only when the
 * head is written, since a drain may have begun while the response was awaited.
 */
export class ClientResponse extends ServerResponse {
  /** Set when Node's parser refused the request, or when it found a fault in the request's body later. */
  rejection: Rejection | undefined;
  /** Called when the parser finds a fault in the body before a response has begun. */
  onRejected: (() => void) | undefined;
  /** How long the idle connection stays open, as the client reads it in `Keep-Alive`; set by the connection. */
  keepAliveSeconds = 0;
  private isWritten = false;

  /** Whether the client still reads: its side of the connection can be written to. */
  get isAnswerable(): boolean {
    return !this.destroyed && this.socket?.writable === true;
  }

  /** Whether the head of a response (other than an interim one) has been written. */
  get hasBegun(): boolean {
    return this.isWritten || this.headersSent;
  }

  /**
   * The parser has refused the request or its body, so nothing behind it on this connection can be read. The request
   * path answers with the rejection unless it has decided on another response. A response that is half written is cut, so
   * that the client sees that it is incomplete.
   */
  reject(rejection: Rejection): void {
    this.rejection ??= rejection;
    this.shouldKeepAlive = false;
    if (!this.hasBegun) this.onRejected?.();
    else if (!this.isWritten && !this.writableEnded) this.destroy();
  }

  /**
   * Writes the head of a response whose body follows with `write` and `end`.
   *
   * @param fields flat name, value, …; the fields of the connection are added to them
   */
  begin(status: number, fields: string[]): void {
    // HTTP/1.0 has no chunks: without a length the response ends with the connection.
    if (!this.useChunkedEncodingByDefault && !hasLength(fields)) this.shouldKeepAlive = false;
    if (this.shouldKeepAlive) fields.push('Keep-Alive', keepAliveValue(this.keepAliveSeconds));
    this.writeHead(status, reasonPhrase(status), fields);
  }

  /** Writes an interim response. @throws as `responseMessage` */
  sendInterim(status: number, fields: readonly string[]): void {
    this.socket?.write(interimMessage(status, fields), 'latin1');
  }

  /**
   * Writes the 101 and lets go of the socket, which carries the other protocol from then on.
   *
   * @throws as `responseMessage`; nothing is written then
   */
  switchProtocols(protocol: string, fields: readonly string[]): void {
    const { socket } = this;
    if (socket === null) return;
    const message = interimMessage(101, ['Connection', 'Upgrade', 'Upgrade', protocol, ...fields]);
    this.isWritten = true;
    socket.write(message, 'latin1');
    this.detachSocket(socket);
  }

  /**
   * Writes a whole response at once, and has the connection closed after it unless `shouldKeepAlive`. It does not go
   * through Node's `writeHead` and `end`, which costs 5 % less CPU; Node is only told when the response is written. Names
   * of fields are not checked: they are ours, or were parsed by `request/transport/response-head.ts`.
   *
   * @throws as `responseMessage`; nothing is written then
   */
  answer(response: WholeResponse): void {
    const head = this.req.method === 'HEAD';
    const message = responseMessage(response, {
      nowMs: Date.now(),
      keepAliveSeconds: this.shouldKeepAlive ? this.keepAliveSeconds : undefined,
      head,
    });
    const { body } = response;
    const { socket } = this;
    this.isWritten = true;
    // While the client does not read, the write is not done, and no request behind this one is served.
    const onWritten = (error?: Error | null) => {
      if (!error) this.emit('finish');
    };
    if (typeof body === 'string' || head) socket?.write(message, 'latin1', onWritten);
    else {
      socket?.write(message, 'latin1');
      socket?.write(body, onWritten);
    }
  }
}

/** @param fields flat name, value, … */
function hasLength(fields: readonly string[]): boolean {
  return fields.some((name, i) => i % 2 === 0 && name.toLowerCase() === 'content-length');
}
