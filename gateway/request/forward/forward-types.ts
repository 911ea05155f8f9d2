import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Duplex } from 'node:stream';
import type { ErrorCode, WholeResponse } from '../../shared/errors.ts';
import type { Operation } from '../../shared/model.ts';

/** The response to the client, with the methods that forwarding needs besides Node's. Fields are flat name, value, … */
export interface ForwardedResponse extends ServerResponse {
  /** Set when the parser has found a fault in the request's body. */
  readonly rejection: object | undefined;
  /** Called when the parser finds such a fault. */
  onRejected: (() => void) | undefined;
  /** Writes an interim response (RFC 9110 §15.2). */
  sendInterim(status: number, fields: readonly string[]): void;
  /** Writes the head of a response whose body follows; the fields of the client's connection are added to `fields`. */
  begin(status: number, fields: string[]): void;
  /** Writes a whole response. */
  answer(response: WholeResponse): void;
  /** Writes the 101 and detaches the socket, which then carries the other protocol. */
  switchProtocols(protocol: string, fields: readonly string[]): void;
}

/** A request to forward, and how. */
export interface ForwardRequest {
  /** The name of its upstream. */
  readonly upstream: string;
  readonly req: IncomingMessage;
  readonly res: ForwardedResponse;
  /** The id of the key. Holders share connections, queue and memory. */
  readonly holder: string;
  /** Flat name, value, … that the gateway adds to the request. Fields of these names that the client sent are dropped. */
  readonly requestFields: readonly string[];
  /** The peer is a trusted proxy, so its `Forwarded` field is kept. */
  readonly keepForwarded: boolean;
  /** Flat name, value, … that the gateway adds to the response. They replace the target's, except `Link` and `Vary`. */
  readonly responseFields: readonly string[];
  readonly bodyBytesMax: number;
}

/** A WebSocket handshake. `res` is assigned to `socket` and carries any response but the 101. */
export interface UpgradeRequest extends Omit<ForwardRequest, 'bodyBytesMax'> {
  readonly socket: Duplex;
  /** The octets that the client sent behind its handshake. */
  readonly head: Buffer;
  readonly opener: TunnelOpener;
}

/** Who opened a WebSocket, and for which operation. Whether it may stay open is checked periodically. */
export interface TunnelOpener {
  readonly requestId: string;
  readonly keyId: string;
  /** The client's address. */
  readonly address: string;
  /** As the screen returned it. */
  readonly authorization: string | undefined;
  readonly operation: Operation;
}

export interface OpenTunnel {
  readonly opener: TunnelOpener;
  /** Closes it gently, so that octets of the target still reach the client. @returns false when it is closing already */
  end(): boolean;
}

/** The attempts to get a response. */
export interface UpstreamUse {
  /** Address and port of the last target tried. */
  readonly target?: string | undefined;
  readonly upstreamMs: number;
  readonly attempts: number;
}

interface Forwarded extends UpstreamUse {
  readonly kind: 'forwarded';
  readonly status: number;
}

interface Failed extends UpstreamUse {
  readonly kind: 'failed';
  readonly code: ErrorCode;
  /**
   * False: the caller writes the refusal. True: a part of the response was sent, and the connection was closed so that the client
   * sees that the rest is missing.
   */
  readonly headersSent: boolean;
  /** For the log. Contains no part of the request. */
  readonly cause: string;
  readonly retryAfterSeconds?: number | undefined;
}

interface ClientGone extends UpstreamUse {
  readonly kind: 'client_gone';
  /** For the log: why the gateway closed the client's connection. Undefined when the client closed it. */
  readonly cause?: string | undefined;
}

export type ForwardOutcome = Forwarded | Failed | ClientGone;
