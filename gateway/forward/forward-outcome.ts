import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Duplex } from 'node:stream';
import type { ErrorCode } from '../errors.ts';

/** What is needed of a client's response beside Node's; fields are flat name, value, … */
export interface ForwardedResponse extends ServerResponse {
  /** Set when the parser has found a fault in the request's body. */
  readonly rejection: object | undefined;
  /** Hears of such a fault. */
  onRejected: (() => void) | undefined;
  /** Writes an interim response ahead of the response (RFC 9110 §15.2). */
  sendInterim(status: number, fields: readonly string[]): void;
  /** Writes the head of a response whose body follows; the fields of the client's connection are added to `fields`. */
  begin(status: number, fields: string[]): void;
  /** Writes the 101, and lets go of the socket, which carries the other protocol from then on. */
  switchProtocols(protocol: string, fields: readonly string[]): void;
}

/** What a request is forwarded with, beside itself. */
export interface ForwardRequest {
  readonly req: IncomingMessage;
  readonly res: ForwardedResponse;
  /** Whose request it is, the key's id: what is shared at a target has a share for each. */
  readonly holder: string;
  /** Flat name, value, … that the gateway sets on the request; client-sent copies never survive. */
  readonly requestFields: readonly string[];
  /** The peer is a trusted proxy: its `Forwarded` field may pass. */
  readonly keepForwarded: boolean;
  /** Flat name, value, … that the answer carries; they replace the backend's copies, only `Link` stands beside them. */
  readonly responseFields: readonly string[];
  readonly bodyBytesMax: number;
}

/** A WebSocket handshake: `res` is assigned to `socket` and carries any answer but 101. */
export interface UpgradeRequest extends Omit<ForwardRequest, 'bodyBytesMax'> {
  readonly socket: Duplex;
  /** What the client sent after its handshake, if anything. */
  readonly head: Buffer;
}

/** What came of the attempts to have the backend answer. */
export interface UpstreamUse {
  /** Address and port of the last target tried. */
  readonly target?: string;
  readonly upstreamMs: number;
  readonly attempts: number;
}

interface Answered extends UpstreamUse {
  readonly kind: 'answered';
  readonly status: number;
  readonly target: string;
}

export interface Failed extends UpstreamUse {
  readonly kind: 'failed';
  readonly code: ErrorCode;
  /** False: the refusal is still to be written. True: the client's connection was cut, so that it sees the truncation. */
  readonly headersSent: boolean;
  /** For the log; holds nothing of the request. */
  readonly cause: string;
  readonly retryAfterSeconds?: number;
}

interface ClientGone extends UpstreamUse {
  readonly kind: 'client_gone';
  /** For the log: why it was given up, where it did not go by itself. */
  readonly cause?: string;
}

export type ForwardOutcome = Answered | Failed | ClientGone;
