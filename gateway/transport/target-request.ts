import type { InterimHead, ResponseHead } from './response-head.ts';

/** One request as a target gets it. What it is made of was screened: nothing is judged again when it is written. */
export interface TargetRequest {
  /** Whose request it is: connections and places in the queue are shared among holders. */
  readonly holder: string;
  readonly method: string;
  /** The raw target: path and query. */
  readonly path: string;
  /** Flat name, value, … with the Content-Length where there is one. */
  readonly fields: readonly string[];
  readonly body: Buffer | StreamedBody | undefined;
  /** A streamed body whose length nobody knows. */
  readonly chunked: boolean;
}

/** A body that is sent while it arrives. */
export interface StreamedBody {
  /** Begins to hand the body over: a connection stands and the head is written. */
  start(sink: BodySink): void;
  /** The sink has room again. */
  resume(): void;
}

export interface BodySink {
  /** False: hand over no more until `resume`. */
  write(piece: Buffer): boolean;
  end(): void;
}

/**
 * Who hears of an answer: at last one of `onEnd` and `onFailure`, once, and nothing after it. It must not throw: the
 * octets of a connection are read for no caller who could hear of it.
 */
export interface ResponseHandler {
  /** A connection stands and the request is about to be written. */
  onSend(connection: TargetConnection): void;
  /** An interim response other than 100 and 101, ahead of the answer. */
  onInterim(head: InterimHead): void;
  /**
   * @param wholeBody the body in Latin-1, one character an octet, when all of it came along with the head; otherwise it
   * comes in pieces
   */
  onHead(head: ResponseHead, wholeBody: string | undefined): void;
  /** @returns false to have no more read, and no further piece handed over, until `resume` */
  onPiece(piece: Buffer): boolean;
  onEnd(): void;
  onFailure(failure: TransportFailure): void;
}

/** The connection that serves a request, for as long as it does. */
export interface TargetConnection {
  /** Reads on after `onPiece` said false. */
  resume(): void;
  /** Gives the request up and closes the connection; `onFailure` is told before it returns. */
  abort(): void;
}

/** How far a request came before it failed: what may be tried again depends on it. */
export type Reach =
  /** No octet of the request can have arrived. */
  | 'not_reached'
  /** The request was written on a connection that had served others before; no octet of an answer came. */
  | 'unanswered_reused'
  /** The request was written on a fresh connection; no octet of an answer came. */
  | 'unanswered_fresh'
  /** An answer had begun. */
  | 'answering';

export interface TransportFailure {
  /**
   * `connect`: no connection was made; `closed`: this side closed it, or closed before there was one; `full`: the holder
   * has its share of the queue; `lost`: the connection ended too early; `malformed`: the answer is none that HTTP allows;
   * `timeout`: the answer did not come; `aborted`: nobody wanted the answer.
   */
  readonly kind: 'connect' | 'closed' | 'full' | 'lost' | 'malformed' | 'timeout' | 'aborted';
  readonly reach: Reach;
  /** For the log; holds nothing of the request. */
  readonly cause: string;
}
