import type { InterimHead, ResponseHead } from './response-head.ts';

/** One request as a target gets it. Its parts were checked before: they are written as they stand. */
export interface TargetRequest {
  /** Whose request it is, the key's id: connections and places in the queue are shared among holders. */
  readonly holder: string;
  readonly method: string;
  /** Path and query, as the client sent them. */
  readonly path: string;
  /** Flat name, value, … with the Content-Length where there is one. */
  readonly fields: readonly string[];
  readonly body: Buffer | StreamedBody | undefined;
  /** The body is sent in chunks, since its length is not known. */
  readonly chunked: boolean;
}

/** A request body that is sent while it arrives from the client. */
export interface StreamedBody {
  /** Called when a connection was found and the head is written: from now on the body writes to the sink. */
  start(sink: BodySink): void;
  /** The sink has room again. */
  resume(): void;
}

export interface BodySink {
  /** @returns false when the caller should write no more until `resume` */
  write(piece: Buffer): boolean;
  end(): void;
}

/**
 * Receives the response to one request. The last call is either `onEnd` or `onFailure`, once. The methods must not
 * throw: they are called from a socket's read callback, where nobody catches.
 */
export interface ResponseHandler {
  /** A connection was found and the request is about to be written. */
  onSend(connection: ActiveConnection): void;
  /** An interim response other than 100 and 101, ahead of the final one. */
  onInterim(head: InterimHead): void;
  /**
   * @param wholeBody the body in Latin-1, one character per octet, when all of it arrived together with the head;
   * undefined when the body follows in pieces
   */
  onHead(head: ResponseHead, wholeBody: string | undefined): void;
  /** @returns false to have no more read until `resume`; pieces that were read already still follow */
  onPiece(piece: Buffer): boolean;
  onEnd(): void;
  onFailure(failure: TransportFailure): void;
}

/** The connection that serves a request, for as long as it does. */
export interface ActiveConnection {
  /** Reads on after `onPiece` returned false. */
  resume(): void;
  /** Gives the request up and closes the connection; `onFailure` is called before this returns. */
  abort(): void;
}

/** How far a request got before it failed: it decides what may be sent again. */
export type Reach =
  /** No octet of the request can have arrived. */
  | 'not_reached'
  /** The request was written on a connection that had served others before; no octet of a response came. */
  | 'unanswered_reused'
  /** The request was written on a new connection; no octet of a response came. */
  | 'unanswered_fresh'
  /** A response had begun. */
  | 'answering';

export interface TransportFailure {
  /**
   * - `connect`: no connection could be made.
   * - `closed`: this side closed the connection, or the pool before there was one.
   * - `full`: the holder has its share of the queue.
   * - `lost`: the connection ended before the response was complete.
   * - `malformed`: the response is not valid HTTP/1.1.
   * - `timeout`: the response did not come in time.
   * - `aborted`: nobody wants the response any more.
   */
  readonly kind: 'connect' | 'closed' | 'full' | 'lost' | 'malformed' | 'timeout' | 'aborted';
  readonly reach: Reach;
  /** For the log; contains nothing of the request. */
  readonly cause: string;
}
