import { connect } from 'node:net';
import { setImmediate as turn } from 'node:timers/promises';
import { readRequests } from './read-requests.ts';
import { readResponses } from './read-responses.ts';

/** What one connection carried, and how it ended. */
export interface Conversation {
  /** The client's address: one for each connection, so that `X-Forwarded-For` tells whose request the backend received. */
  readonly address: string;
  readonly sent: string;
  readonly received: string;
  /** `answered`: every response came, and the client closed; `hung`: some did not come within `hangMs`. */
  readonly end: 'answered' | 'closed' | 'reset' | 'hung';
}

/** No response may take longer: a machine that pauses is no hang. */
export const hangMs = 20_000;

export interface ConversationOptions {
  readonly port: number;
  /** On loopback. */
  readonly address: string;
  /** One write each, Latin-1. */
  readonly pieces: readonly string[];
}

/**
 * Sends the pieces and reads until every whole request has its response or the gateway closes. If the last request is
 * not whole, the client then closes its side; a malformed one must be refused without that.
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
