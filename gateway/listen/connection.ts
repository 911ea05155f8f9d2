import type { IncomingMessage } from 'node:http';
import type { Socket } from 'node:net';
import type { ErrorAnswer, ErrorCode } from '../errors.ts';
import { answerMessage } from './answer-message.ts';
import type { ClientResponse } from './client-response.ts';
import { closeGently } from './close-gently.ts';

/** What Node's parser refused, or a limit of the listener: it never became a request. */
export interface Rejection {
  readonly code: ErrorCode;
  /** Public. */
  readonly message: string;
  readonly peerAddress: string;
}

/** One client connection: the order of its answers, and its end. */
export interface Connection {
  readonly socket: Socket;
  /** Serves a request when those before it are answered. */
  receive(res: ClientResponse): void;
  /** Answers something that never became a request, when those before it are answered, and closes. */
  reject(rejection: Omit<Rejection, 'peerAddress'>, answersHead: boolean): void;
  /** Nothing after the requests received so far can be served. */
  stopReceiving(): void;
  /** The request that is received next is the last: Node drops what it has read behind an upgrade that it ignores. */
  receiveLast(): void;
  /** The connection now belongs to whoever serves the upgrade; `res` is for refusing it. */
  handOver(res: ClientResponse): void;
  /** Whether there was a request. */
  hasReceived(): boolean;
  /** No request is under way or waiting. */
  isIdle(): boolean;
  /** Neither side moved a byte for as long as the socket's timer was set to. */
  onInactive(): void;
  /** Whatever is answered last says `Connection: close`; an idle connection stays open for one more request. */
  drain(): void;
  close(): void;
}

export interface ConnectionOptions {
  readonly socket: Socket;
  readonly peerAddress: string;
  /** Begins to serve; what it returns names the exchange to `describeRejection`. */
  readonly serve: (req: IncomingMessage, res: ClientResponse) => unknown;
  readonly describeRejection: (rejection: Rejection, replaced: unknown) => Promise<ErrorAnswer | undefined>;
  readonly reportBug: (bug: unknown) => void;
  readonly bounds: {
    readonly pipelinedMax: number;
    readonly keepAliveTimeoutMs: number;
    readonly writeTimeoutMs: number;
    readonly lingerBytesMax: number;
    readonly lingerTimeoutMs: number;
  };
}

/**
 * Requests of one connection are served one after the other, as nginx does: Node would hand out all that a client
 * pipelined at once, also those behind a request whose refusal ends the connection, and would charge and forward
 * requests whose answers can never be sent.
 */
export function createConnection({
  socket,
  peerAddress,
  serve,
  describeRejection,
  reportBug,
  bounds,
}: ConnectionOptions): Connection {
  /** Being served. */
  let current: ClientResponse | undefined;
  /** What `serve` returned for it. */
  let exchange: unknown;
  /** Pipelined behind it. */
  const waiting: ClientResponse[] = [];
  /** Answered while its body was still arriving. */
  let unfinished: IncomingMessage | undefined;
  let rejection: Omit<Rejection, 'peerAddress'> | undefined;
  /** What is rejected is a HEAD. */
  let rejectsHead = false;
  let received = false;
  /** Nothing is read while requests wait. */
  let isHeld = false;
  let draining = false;
  let nextIsLast = false;
  /** Nothing more is received. */
  let ending = false;
  /** Nothing more is served or written. */
  let closed = false;
  /** How long neither side has moved a byte, and what they had moved before. */
  let inactiveMs = 0;
  let bytesMoved = 0;

  // Node calls this after an answer with `Connection: close`. Its own would reset a client that is still sending.
  const destroySoon = socket.destroySoon;
  socket.destroySoon = close;

  function receive(res: ClientResponse): void {
    received = true;
    if (ending || closed || rejection !== undefined) return;
    if (draining || nextIsLast || isOld(res.req) || waiting.length + 1 === bounds.pipelinedMax) endAfter(res);
    if (current === undefined) {
      serveNow(res);
      return;
    }
    waiting.push(res);
    // Not in this turn: the parser resumes the socket at the end of each message of the packet that it is reading.
    setImmediate(holdWhileWaiting);
  }

  /** HTTP/1.0 without keep-alive (RFC 9112 §9.3); Node's parser also takes `Proxy-Connection` for it. */
  function isOld({ httpVersionMinor, headers }: IncomingMessage): boolean {
    return httpVersionMinor === 0 && headers.connection?.toLowerCase() !== 'keep-alive';
  }

  function serveNow(res: ClientResponse): void {
    current = res;
    unfinished = undefined;
    res.on('close', onAnswered);
    exchange = serve(res.req, res);
  }

  function onAnswered(): void {
    const answered = current;
    current = undefined;
    exchange = undefined;
    if (closed || socket.destroyed || answered === undefined) return;
    if (!answered.shouldKeepAlive) {
      close();
      return;
    }
    if (!answered.req.complete) {
      unfinished = answered.req;
      return;
    }
    const next = waiting.shift();
    if (next !== undefined) {
      if (!next.req.complete) letGo();
      serveNow(next);
    } else if (rejection !== undefined) answerRejection(rejection);
    else if (draining) close();
    else letGo();
  }

  /** Up to the last answer: Node takes the end of a client's side, when it reads it, for the end of the client. */
  function holdWhileWaiting(): void {
    if (waiting.length === 0) return;
    isHeld = true;
    socket.pause();
  }

  function letGo(): void {
    if (!isHeld) return;
    isHeld = false;
    socket.resume();
  }

  function endAfter(res: ClientResponse): void {
    res.shouldKeepAlive = false;
    ending = true;
  }

  function reject(refused: Omit<Rejection, 'peerAddress'>, answersHead: boolean): void {
    if (closed || socket.destroyed || rejection !== undefined) return;
    const newest = waiting.at(-1) ?? current;
    // Behind the last request nothing is answered, but in its body a fault is.
    if (ending && newest?.req.complete !== false) return;
    rejection = refused;
    rejectsHead = answersHead;
    socket.pause();
    if (unfinished?.complete === false) {
      // Its request has had its answer.
      close();
    } else if (newest === undefined) {
      answerRejection(refused);
    } else if (!newest.req.complete) {
      // The fault lies in the body of the newest request: the rejection takes the place of its answer.
      if (waiting.pop() === undefined) answerRejection(refused);
    }
  }

  function answerRejection(refused: Omit<Rejection, 'peerAddress'>): void {
    writeRejection(refused).catch((bug) => {
      reportBug(bug);
      socket.destroy();
    });
  }

  /** The answer it replaces may have begun meanwhile: a whole one stays, half a one is cut so that it is seen to be. */
  async function writeRejection({ code, message }: Omit<Rejection, 'peerAddress'>): Promise<void> {
    const replaced = current;
    const answer = await describeRejection({ code, message, peerAddress }, exchange);
    if (closed) return;
    if (replaced?.hasBegun === true) {
      if (replaced.isWhole) close();
      else socket.destroy();
    } else if (answer !== undefined) {
      const head = replaced === undefined ? rejectsHead : replaced.req.method === 'HEAD';
      socket.write(answerMessage(answer, { nowMs: Date.now(), keepAlive: false, head }), 'latin1');
      close();
    }
    // Otherwise the answer that was decided in its place says `Connection: close` itself.
  }

  function close(): void {
    if (closed) return;
    closed = true;
    closeGently(socket, { bytesMax: bounds.lingerBytesMax, timeoutMs: bounds.lingerTimeoutMs });
  }

  function isIdle(): boolean {
    return current === undefined && waiting.length === 0 && rejection === undefined && !closed;
  }

  function onInactive(): void {
    const { bytesRead, bytesWritten, timeout: elapsedMs = 0, writableLength } = socket;
    const isUnmoved = bytesRead + bytesWritten === bytesMoved;
    bytesMoved = bytesRead + bytesWritten;
    inactiveMs = isUnmoved ? inactiveMs + elapsedMs : elapsedMs;
    const isWaiting = current === undefined || writableLength > 0;
    const leftMs = (current === undefined ? bounds.keepAliveTimeoutMs : bounds.writeTimeoutMs) - inactiveMs;
    // The backend's silence and a slow body have their own limits; idleness and a client that does not read end here.
    if (isWaiting && leftMs <= 0) socket.destroy();
    else socket.setTimeout(isWaiting ? Math.min(leftMs, bounds.writeTimeoutMs) : bounds.writeTimeoutMs);
  }

  return {
    socket,
    receive,
    reject,
    stopReceiving() {
      ending = true;
      socket.pause();
    },
    handOver(res) {
      closed = true;
      current = res;
      socket.destroySoon = destroySoon;
      res.shouldKeepAlive = false;
      res.assignSocket(socket);
      // Node takes its own listeners off an upgraded socket; `res` needs them until it is detached.
      socket.setTimeout(bounds.writeTimeoutMs);
      socket.on('timeout', () => res.socket === socket && onInactive());
      socket.on('drain', () => res.socket === socket && res.emit('drain'));
      res.once('finish', () =>
        closeGently(socket, { bytesMax: bounds.lingerBytesMax, timeoutMs: bounds.lingerTimeoutMs }),
      );
    },
    receiveLast() {
      nextIsLast = true;
    },
    hasReceived: () => received,
    isIdle,
    onInactive,
    drain() {
      draining = true;
      const newest = waiting.at(-1) ?? current;
      if (newest !== undefined && !newest.hasBegun) endAfter(newest);
    },
    close,
  };
}
