import { ServerResponse } from 'node:http';
import type { Rejection, WholeResponse } from '../../shared/errors.ts';
import { interimMessage, keepAliveValue, reasonPhrase, responseMessage } from './response-message.ts';

/**
 * The only writer of heads to a client: of responses whose body follows (`begin`), whole responses (`answer`), interim responses
 * and the 101. `Date`, `Connection` and `Keep-Alive` are decided when the head is written, because a drain may begin shortly
 * before.
 */
export class ClientResponse extends ServerResponse {
  /** Set when Node's parser has refused the request or its body. */
  rejection: Rejection | undefined;
  /** Called when the parser finds a fault in the body before a response has begun. */
  onRejected: (() => void) | undefined;
  /** The idle time for `Keep-Alive`; set by the connection. */
  keepAliveSeconds = 0;
  private isWritten = false;

  /** Whether the client's connection can still be written to. */
  get isAnswerable(): boolean {
    return !this.destroyed && this.socket?.writable === true;
  }

  /** Whether the head of a response (other than an interim one) has been written. */
  get hasBegun(): boolean {
    return this.isWritten || this.headersSent;
  }

  /**
   * The parser has refused the request or its body, so no further request of this connection can be read. The request path
   * answers with the rejection unless it has decided on another response. A half-written response is cut, so that the client
   * sees that it is incomplete.
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
   * @param fields flat name, value, …; the fields of the connection are added
   */
  begin(status: number, fields: string[]): void {
    // HTTP/1.0 has no chunks, so a response without a length ends with the connection.
    if (!this.useChunkedEncodingByDefault && !hasLength(fields)) this.shouldKeepAlive = false;
    if (this.shouldKeepAlive) fields.push('Keep-Alive', keepAliveValue(this.keepAliveSeconds));
    this.writeHead(status, reasonPhrase(status), fields);
  }

  /** Writes an interim response. @throws as `responseMessage` */
  sendInterim(status: number, fields: readonly string[]): void {
    this.socket?.write(interimMessage(status, fields), 'latin1');
  }

  /**
   * Writes the 101 and detaches the socket, which then carries the other protocol.
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
   * Writes a whole response at once. The connection is closed after it unless `shouldKeepAlive`. It does not use Node's
   * `writeHead` and `end`, which saves 5 % of the CPU. Names of fields are not checked, because they are our own or were parsed by
   * `request/transport/response-head.ts`.
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
    // The write ends when the client has read, and only then is the next request served.
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
