import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Duplex } from 'node:stream';
import type { ErrorCode, WholeResponse } from '../../shared/errors.ts';
import type { Operation } from '../../shared/model.ts';

/** The part of `ClientResponse` (`respond/client-response.ts`) that forwarding needs. Header fields are a flat list of names and values. */
interface ForwardedResponse extends ServerResponse {
  readonly rejection: object | undefined;
  onRejected: (() => void) | undefined;
  sendInterim(status: number, fields: readonly string[]): void;
  begin(status: number, fields: string[]): void;
  answer(response: WholeResponse): void;
  switchProtocols(protocol: string, fields: readonly string[]): void;
}

/** A request to forward, with its upstream and its additional header fields. */
export interface ForwardRequest {
  /** The name of the upstream in the configuration. */
  readonly upstream: string;
  readonly req: IncomingMessage;
  readonly res: ForwardedResponse;
  /** The request target in origin form. */
  readonly target: string;
  /** The client's value of `Host`. */
  readonly host: string;
  /** The id of the key. Connections, queue and memory are divided among keys. */
  readonly holder: string;
  /** The header fields that the gateway adds to the request, as a flat list. The client's fields with these names are dropped. */
  readonly requestFields: readonly string[];
  /** Whether the `Forwarded` field is forwarded. True when the peer is a trusted proxy. */
  readonly keepForwarded: boolean;
  /**
   * The header fields that the gateway adds to the response, as a flat list. The target's fields with these names are dropped, except
   * `Link` and `Vary`.
   */
  readonly responseFields: readonly string[];
  readonly bodyBytesMax: number;
  /** Header fields that a capability sends to the targets. */
  readonly attemptFields?: AttemptFields | undefined;
  /** Called at the end of each attempt, before the outcome. */
  readonly onAttemptEnd: ((attempt: Attempt) => void) | undefined;
}

/** Header fields that can differ for each attempt to forward a request. */
export interface AttemptFields {
  /** The client's fields with these names (lower case) are dropped. */
  readonly replaced: ReadonlySet<string>;
  /** Returns the fields of an attempt, as a flat list. @param attempt from 1 */
  fieldsOf(attempt: number): readonly string[];
}

/** An attempt to forward a request to a target. */
export interface Attempt {
  /** Address and port of the target. */
  readonly target: string;
  /** Monotonic, ms. */
  readonly startedMs: number;
  /** Monotonic, ms. */
  readonly endedMs: number;
  /** The status of the target's response; 0 without a response. */
  readonly status: number;
  /** Why the response is missing or incomplete; undefined after a whole response. */
  readonly cause: string | undefined;
  /** The gateway's code for the failure; undefined after a whole response, and if the gateway itself ended the attempt. */
  readonly error: ErrorCode | undefined;
}

/** A WebSocket handshake. `res` writes to `socket`, for example when the target refuses the handshake. */
export interface UpgradeRequest extends Omit<ForwardRequest, 'bodyBytesMax'> {
  readonly socket: Duplex;
  /** The octets that the client sent after its handshake request. */
  readonly head: Buffer;
  readonly opener: TunnelOpener;
}

/** The key, client and operation of an open WebSocket. The gateway checks periodically whether the WebSocket may stay open. */
export interface TunnelOpener {
  readonly requestId: string;
  readonly keyId: string;
  readonly address: string;
  /** The raw `Authorization` field. If the client sent the secret as a WebSocket subprotocol, this field was made from the subprotocol. */
  readonly authorization: string | undefined;
  readonly operation: Operation;
}

export interface OpenTunnel {
  readonly opener: TunnelOpener;
  /** Closes the tunnel after the target's last octets have reached the client. @returns false when it is already closing */
  end(): boolean;
}

/** The attempts to forward a request, and the time that they took. */
export interface UpstreamUse {
  /** Address and port of the target of the last attempt. */
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
   * Whether a part of the response was already sent. If a part was sent, the gateway closes the connection, and the client notices that the
   * response is incomplete. If nothing was sent, the caller writes an error response.
   */
  readonly headersSent: boolean;
  /** The cause of the failure, for the log. The text contains no part of the request. */
  readonly cause: string;
  readonly retryAfterSeconds?: number | undefined;
}

interface ClientGone extends UpstreamUse {
  readonly kind: 'client_gone';
  /** The reason why the gateway closed the client's connection, for the log; undefined when the client closed it. */
  readonly cause?: string | undefined;
}

export type ForwardOutcome = Forwarded | Failed | ClientGone;
