import type { Rejection, WholeResponse } from '../../shared/errors.ts';
import { http } from '../../shared/http/node-http.ts';
import { interimMessage, keepAliveValue, reasonPhrase, responseMessage } from './response-message.ts';

/**
 * A response to a client. Only this class writes response heads: `begin` for a response whose body follows, `answer` for a whole response,
 * `sendInterim` for interim responses, and `switchProtocols` for a 101. `Date`, `Connection` and `Keep-Alive` are set when the head is
 * written, because a graceful stop may begin while the request is served.
 */
export class ClientResponse extends http.ServerResponse {
  /** The error when Node's parser has refused the request or its body. */
  rejection: Rejection | undefined;
  /** Called when the parser finds a fault in the body before a response has begun. */
  onRejected: (() => void) | undefined;
  /** The idle timeout that `Keep-Alive` announces. `ClientConnection` sets it. */
  keepAliveSeconds = 0;
  private isWritten = false;

  /** Whether the gateway can still write to the client's connection. */
  get isAnswerable(): boolean {
    return !this.destroyed && this.socket?.writable === true;
  }

  /** Whether the head of a response (other than an interim one) has been written. */
  get hasBegun(): boolean {
    return this.isWritten || this.headersSent;
  }

  /**
   * Called when the parser has refused the request or its body. The parser cannot read further requests of the connection. The request path
   * responds with this error, unless it has already decided on another response. The connection of a partly written response is closed, so
   * that the client notices that the response is incomplete.
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
   * @param fields a flat list of names and values, to which the function adds `Keep-Alive`
   */
  begin(status: number, fields: string[]): void {
    // HTTP/1.0 has no chunked coding. The end of the connection marks the end of a response without Content-Length.
    if (!this.useChunkedEncodingByDefault && !hasLength(fields)) this.shouldKeepAlive = false;
    if (this.shouldKeepAlive) fields.push('Keep-Alive', keepAliveValue(this.keepAliveSeconds));
    this.writeHead(status, reasonPhrase(status), fields);
  }

  /** Writes an interim response. @throws like `responseMessage` */
  sendInterim(status: number, fields: readonly string[]): void {
    this.socket?.write(interimMessage(status, fields), 'latin1');
  }

  /**
   * Writes the 101 response and detaches the socket for the new protocol.
   *
   * @throws like `responseMessage`, before anything is written
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
   * Writes a whole response with one call. Closes the connection afterwards unless `shouldKeepAlive` is set. The method does not use Node's
   * `writeHead` and `end`, which saves 5 % of the CPU time. Field names are not checked, because they are constants of the gateway or were
   * checked by `request/transport/response-head.ts`.
   *
   * @throws like `responseMessage`, before anything is written
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
    // The write ends when the kernel has accepted all octets. The next request is served only after the end of the write.
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

/** @param fields a flat list of names and values */
function hasLength(fields: readonly string[]): boolean {
  return fields.some((name, i) => i % 2 === 0 && name.toLowerCase() === 'content-length');
}
