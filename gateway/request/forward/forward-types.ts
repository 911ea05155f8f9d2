import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Duplex } from 'node:stream';
import type { ErrorCode, WholeResponse } from '../../shared/errors.ts';
import type { Operation } from '../../shared/model.ts';

/** The response to the client: what forwarding needs of it beside Node's methods. Fields are flat name, value, … */
export interface ForwardedResponse extends ServerResponse {
  /** Set when the parser has found a fault in the request's body. */
  readonly rejection: object | undefined;
  /** Called when the parser finds such a fault. */
  onRejected: (() => void) | undefined;
  /** Writes an interim response ahead of the final one (RFC 9110 §15.2). */
  sendInterim(status: number, fields: readonly string[]): void;
  /** Writes the head of a response whose body follows; the fields of the client's connection are added to `fields`. */
  begin(status: number, fields: string[]): void;
  /** Writes a whole response. */
  answer(response: WholeResponse): void;
  /** Writes the 101 and detaches the socket, which carries the other protocol from then on. */
  switchProtocols(protocol: string, fields: readonly string[]): void;
}

/** A request to forward, and how. */
export interface ForwardRequest {
  /** The name of the upstream that it goes to. */
  readonly upstream: string;
  readonly req: IncomingMessage;
  readonly res: ForwardedResponse;
  /** Whose request it is, the key's id: connections, queue and memory are shared among holders. */
  readonly holder: string;
  /** Flat name, value, … that the gateway adds to the request. Fields of these names that the client sent are dropped. */
  readonly requestFields: readonly string[];
  /** The peer is a trusted proxy: its `Forwarded` field is kept. */
  readonly keepForwarded: boolean;
  /** Flat name, value, … that the gateway adds to the response. They replace the target's, except `Link` and `Vary`. */
  readonly responseFields: readonly string[];
  readonly bodyBytesMax: number;
}

/** A WebSocket handshake. `res` is assigned to `socket` and carries any response but the 101. */
export interface UpgradeRequest extends Omit<ForwardRequest, 'bodyBytesMax'> {
  readonly socket: Duplex;
  /** What the client sent behind its handshake, if anything. */
  readonly head: Buffer;
  readonly opener: TunnelOpener;
}

/** Who opened a WebSocket, and for what: whether it may stay open is looked at again and again. */
export interface TunnelOpener {
  readonly requestId: string;
  readonly keyId: string;
  /** The client's. */
  readonly address: string;
  /** As the screen has found it. */
  readonly authorization: string | undefined;
  readonly operation: Operation;
}

export interface OpenTunnel {
  readonly opener: TunnelOpener;
  /** Closes it gently: what the target has sent still reaches the client. @returns false when it closes already */
  end(): boolean;
}

/** What the attempts to get a response came to. */
export interface UpstreamUse {
  /** Address and port of the last target tried. */
  readonly target?: string;
  readonly upstreamMs: number;
  readonly attempts: number;
}

interface Forwarded extends UpstreamUse {
  readonly kind: 'forwarded';
  readonly status: number;
  readonly target: string;
}

export interface Failed extends UpstreamUse {
  readonly kind: 'failed';
  readonly code: ErrorCode;
  /**
   * False: the caller writes the refusal. True: a part of the response was sent and the connection closed, so that the
   * client sees that the rest is missing.
   */
  readonly headersSent: boolean;
  /** For the log; contains nothing of the request. */
  readonly cause: string;
  readonly retryAfterSeconds?: number;
}

interface ClientGone extends UpstreamUse {
  readonly kind: 'client_gone';
  /** For the log: why the gateway closed the client's connection; undefined when the client closed it. */
  readonly cause?: string;
}

export type ForwardOutcome = Forwarded | Failed | ClientGone;
