import { connect } from 'node:net';
import { setImmediate as turn } from 'node:timers/promises';
import { readRequests } from './read-requests.ts';
import { readResponses } from './read-responses.ts';

/** The bytes of one connection in both directions, and the way in which the connection ended. */
export interface Conversation {
  /**
   * The client's address. Each connection has its own client address, so that `X-Forwarded-For` shows which client sent a request.
   */
  readonly address: string;
  readonly sent: string;
  readonly received: string;
  /**
   * `answered`: every response arrived, and the client closed the connection. `hung`: a response did not arrive within `hangMs`.
   */
  readonly end: 'answered' | 'closed' | 'reset' | 'hung';
}

/** The time after which a missing response counts as a hang. The limit is long, so that a pause of the machine does not count as a hang. */
export const hangMs = 20_000;

export interface ConversationOptions {
  readonly port: number;
  /** The client's loopback address. */
  readonly address: string;
  /** Each piece is one write as Latin-1 text. */
  readonly pieces: readonly string[];
}

/**
 * Sends the pieces and reads until every complete request has its response or the gateway closes the connection. The client closes its
 * sending side if the last request is incomplete. The gateway must refuse a malformed request before the client closes.
 */
export async function converse({ port, address, pieces }: ConversationOptions): Promise<Conversation> {
  const sent = pieces.join('');
  const { requests, methods, end } = readRequests(sent);
  const wholeCount = requests.filter(({ body }) => body !== undefined).length;

  const socket = connect({ port, host: '127.0.0.1', localAddress: address, noDelay: true });
  socket.setEncoding('latin1');
  const outcome = Promise.withResolvers<Conversation['end']>();
  const timer = setTimeout(() => outcome.resolve('hung'), hangMs);
  let received = '';
  let allSent = false;
  socket.on('data', (text: string) => {
    received += text;
    leaveWhenAnswered();
  });
  socket.on('end', () => outcome.resolve('closed'));
  socket.on('error', () => outcome.resolve('reset'));
  socket.on('close', () => outcome.resolve('closed'));

  function leaveWhenAnswered(): void {
    const count = readResponses(received, methods).responses.length;
    if (!allSent || count < wholeCount) return;
    if (end === 'clean' || count > methods.length) outcome.resolve('answered');
    else if (end === 'incomplete') socket.end();
  }

  for (const piece of pieces) {
    if (socket.destroyed) break;
    socket.write(piece, 'latin1');
    if (pieces.length > 1) await turn();
  }
  allSent = true;
  leaveWhenAnswered();

  const how = await outcome.promise;
  clearTimeout(timer);
  socket.destroy();
  return { address, sent, received, end: how };
}
