import type { KeyDirectory } from '../keys/directory/key-directory.ts';
import type { AtTurnEnd } from '../shared/event-loop-batch.ts';
import type { Bounds } from '../shared/timeouts-and-sizes.ts';
import type { UsageRecorder } from '../usage/recorder.ts';
import type { Exchange } from './exchange.ts';
import type { Forwarder } from './forward/forwarder.ts';
import type { Limiter } from './limit/limiter.ts';
import type { UnreadPages } from './pages/unread-pages.ts';

/** The stations that have state, and what else the request path needs besides pure functions. */
export interface Stations {
  readonly limiter: Limiter;
  readonly forwarder: Forwarder;
  /** Undefined when all keys are in the configuration. */
  readonly directory: Pick<KeyDirectory, 'lookUp' | 'readAgain' | 'drop'> | undefined;
  readonly atTurnEnd: AtTurnEnd;
  readonly unreadPages: UnreadPages;
  /** Undefined without a usage record. */
  readonly usage: Pick<UsageRecorder, 'decided'> | undefined;
  readonly bounds: Bounds;
  /** The gateway's clock, epoch ms. Limits are decided on the store's clock. */
  readonly nowMs: () => number;
  /** Each is called once for every exchange, after its end. */
  readonly records: readonly ((exchange: Exchange) => void)[];
  /** Called with every exception in the path. */
  readonly reportBug: (error: unknown, exchange: Exchange) => void;
}
