import type { Decided, Exchange, Permitted, Screened } from '../../request/exchange.ts';
import type { Attempt, AttemptFields } from '../../request/forward/forward-types.ts';
import type { Ending } from '../../request/path/end-exchange.ts';
import type { OfferedOperation } from '../../request/route/operation-table.ts';
import type { Stations } from '../../request/stations.ts';
import type { Refusal } from '../../shared/errors.ts';
import type { Decision, Operation } from '../../shared/model.ts';

/** The hooks of the request path, in the order in which `travel()` calls them. They are compiled with each snapshot. */
export interface RequestHooks {
  /**
   * The gateway's own pages on the public listener, by path. They answer before the key and the limits are checked. A configuration is
   * invalid if one of its operations has the path of a page.
   */
  readonly pages: ReadonlyMap<string, AnswerPage>;
  /** Called with each decision about a request of a key, before the response. */
  readonly observeDecision: readonly ObserveDecision[];
  /** Refuses admitted requests of keys that may call the operation. The first refusal counts. */
  readonly refuse: readonly RefuseAdmitted[];
  /** Header fields for the targets of a request, asked once before the request is forwarded. The first result counts. */
  readonly attemptFields: readonly FindAttemptFields[];
  /** Called at the end of each attempt to forward a request, before the end of its exchange. */
  readonly observeAttempt: readonly ObserveAttempt[];
  /**
   * Called once for each exchange, at its end. Capabilities come first, because the access line shows the trace that they record. A
   * WebSocket's exchange ends with its handshake. An exception affects no other observer.
   */
  readonly observeEnd: readonly ObserveEnd[];
}

/** @param offered the operation that also has this path. Without an API document, the only operation has every path */
export type AnswerPage = (
  exchange: Screened,
  offered: OfferedOperation | undefined,
  stations: Stations,
) => Promise<Ending>;

/** @param units the cost of the request */
export type ObserveDecision = (exchange: Decided, units: number) => void;

export type RefuseAdmitted = (
  operation: Operation,
  decision: Extract<Decision, { kind: 'admitted' }>,
) => Refusal | undefined;

type FindAttemptFields = (exchange: Permitted) => AttemptFields | undefined;

type ObserveAttempt = (exchange: Permitted, attempt: Attempt) => void;

export type ObserveEnd = (exchange: Exchange) => void;
