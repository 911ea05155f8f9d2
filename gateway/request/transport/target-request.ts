import type { InterimHead, ResponseHead } from './response-head.ts';

/** A request as it is written to a target. The request is written unchanged, because it was checked before. */
export interface TargetRequest {
  /** The id of the key. Connections and places in the queue are divided among keys. */
  readonly holder: string;
  readonly method: string;
  /** Path and query exactly as the client sent them. */
  readonly path: string;
  /** The header fields, including any Content-Length, as a flat list of names and values. */
  readonly fields: readonly string[];
  readonly body: Buffer | StreamedBody | undefined;
  /** Whether the body has no known length and is therefore sent chunked. */
  readonly chunked: boolean;
}

/** A request body that is sent while it arrives from the client. */
export interface StreamedBody {
  /** Called when the request head was written. After this call, the body writes its octets to the sink. */
  start(sink: BodySink): void;
  /** Called when the sink can accept more octets after `write` returned false. */
  resume(): void;
}

export interface BodySink {
  /** @returns false when the caller should wait for `resume` before it writes more */
  write(piece: Buffer): boolean;
  end(): void;
}

/**
 * Receives the response to one request. The last call is either `onEnd` or `onFailure`. The methods must not throw, because the read
 * callback of a socket calls them.
 */
export interface ResponseHandler {
  /** Called before the request is written to this connection. */
  onSend(connection: ActiveConnection): void;
  /** Called with each interim response other than 100 and 101. */
  onInterim(head: InterimHead): void;
  /** @param wholeBody the body in Latin-1 if all of it arrived with the head; undefined when the body follows in pieces */
  onHead(head: ResponseHead, wholeBody: string | undefined): void;
  /** @returns false to stop reading until `resume`; pieces that are already read still follow */
  onPiece(piece: Buffer): boolean;
  onEnd(): void;
  onFailure(failure: TransportFailure): void;
}

/** The connection of a request. Valid only until the request ends. */
export interface ActiveConnection {
  /** Continues reading after `onPiece` returned false. */
  resume(): void;
  /** Abandons the request and closes the connection. Calls `onFailure` before it returns. */
  abort(): void;
}

/** How far a request got before it failed. The value decides whether the request may be retried. */
export type Reach =
  /** No octet of the request can have reached the target. */
  | 'not_reached'
  /** The request was written on a reused connection. No octet of a response arrived. */
  | 'unanswered_reused'
  /** The request was written on a new connection. No octet of a response arrived. */
  | 'unanswered_fresh'
  /** At least one octet of a response had arrived. */
  | 'answering';

export interface TransportFailure {
  /**
   * `connect`: no connection could be established. `closed`: the gateway closed the connection or the pool. `full`: the holder has used up
   * its share of the queue. `lost`: the connection ended before the response was complete. `malformed`: the response is not valid HTTP/1.1.
   * `timeout`: the response did not arrive in time. `aborted`: the response is no longer needed.
   */
  readonly kind: 'connect' | 'closed' | 'full' | 'lost' | 'malformed' | 'timeout' | 'aborted';
  readonly reach: Reach;
  /** The cause of the failure, for the log. The text contains no part of the request. */
  readonly cause: string;
}
