import type { InterimHead, ResponseHead } from './response-head.ts';

/** A request in the form in which it is sent to a target. Its parts were checked before and are written unchanged. */
export interface TargetRequest {
  /** The id of the key. Holders share connections and places in the queue. */
  readonly holder: string;
  readonly method: string;
  /** Path and query, as the client sent them. */
  readonly path: string;
  /** Flat name, value, … with the Content-Length where there is one. */
  readonly fields: readonly string[];
  readonly body: Buffer | StreamedBody | undefined;
  /** The body is sent in chunks, because its length is not known. */
  readonly chunked: boolean;
}

/** A request body that is sent while it arrives from the client. */
export interface StreamedBody {
  /** Called when the head is written to a connection. The body then writes to the sink. */
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
 * Receives the response to one request. The last call is one call of `onEnd` or `onFailure`. The methods must not throw, because a
 * socket's read callback calls them.
 */
export interface ResponseHandler {
  /** The request is about to be written to this connection. */
  onSend(connection: ActiveConnection): void;
  /** An interim response other than 100 and 101. */
  onInterim(head: InterimHead): void;
  /**
   * @param wholeBody the body in Latin-1 if all of it arrived with the head; undefined when the body follows in pieces
   */
  onHead(head: ResponseHead, wholeBody: string | undefined): void;
  /** @returns false to stop reading until `resume`; pieces that are already read still follow */
  onPiece(piece: Buffer): boolean;
  onEnd(): void;
  onFailure(failure: TransportFailure): void;
}

/** The connection that serves a request, for as long as it does. */
export interface ActiveConnection {
  /** Continues reading after `onPiece` returned false. */
  resume(): void;
  /** Abandons the request and closes the connection. Calls `onFailure` before it returns. */
  abort(): void;
}

/** How far a request got before it failed. This decides whether it may be sent again. */
export type Reach =
  /** No octet of the request can have reached the target. */
  | 'not_reached'
  /** The request was written on a reused connection. No octet of a response arrived. */
  | 'unanswered_reused'
  /** The request was written on a new connection. No octet of a response arrived. */
  | 'unanswered_fresh'
  /** A response had begun. */
  | 'answering';

export interface TransportFailure {
  /**
   * - `connect`: no connection could be made.
   * - `closed`: the gateway closed the connection or the pool.
   * - `full`: the holder has used up its share of the queue.
   * - `lost`: the connection ended before the response was complete.
   * - `malformed`: the response is not valid HTTP/1.1.
   * - `timeout`: the response did not arrive in time.
   * - `aborted`: the response is no longer needed.
   */
  readonly kind: 'connect' | 'closed' | 'full' | 'lost' | 'malformed' | 'timeout' | 'aborted';
  readonly reach: Reach;
  /** For the log. Contains no part of the request. */
  readonly cause: string;
}
