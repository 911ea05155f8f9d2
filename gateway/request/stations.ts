import type { ProcessPart } from '../capabilities/interfaces/running.ts';
import type { KeyChange } from '../fleet/changes.ts';
import type { KeyDirectory } from '../keys/directory/key-directory.ts';
import type { Leaks } from '../keys/leaks/leaks.ts';
import type { AtTurnEnd } from '../shared/event-loop-batch.ts';
import type { Bounds } from '../shared/timeouts-and-sizes.ts';
import type { UsageReader } from '../usage/read/usage-reader.ts';
import type { RowSources } from '../usage/read/usage-rows.ts';
import type { Exchange } from './exchange.ts';
import type { Forwarder } from './forward/forwarder.ts';
import type { Limiter } from './limit/limiter.ts';
import type { UnreadPages } from './pages/unread-pages.ts';
import type { RecordTurns } from './path/record-turns.ts';

/** The stateful steps of the request path, and its other dependencies. */
export interface Stations {
  readonly limiter: Limiter;
  /** The parts of capabilities in this process. */
  readonly parts: readonly ProcessPart[];
  readonly forwarder: Forwarder;
  /** The key directory; undefined when all keys are in the configuration. */
  readonly directory:
    | Pick<KeyDirectory, 'lookUp' | 'readAgain' | 'confirm' | 'drop' | 'read' | 'replace'>
    | undefined;
  readonly leaks: Leaks;
  readonly atTurnEnd: AtTurnEnd;
  readonly unreadPages: UnreadPages;
  /** The part of the usage record that holders of keys may read; undefined without a usage record. */
  readonly ownUsage: OwnUsage | undefined;
  /** Records a change that a key holder or a report of a leaked secret has made, so that operators see it. */
  readonly recordKeyChange: (change: KeyChange) => void;
  readonly bounds: Bounds;
  /** The gateway's clock, epoch ms. The limiter uses the store's clock, not this clock. */
  readonly nowMs: () => number;
  /** Functions that are each called once for every exchange, after its end. */
  readonly records: readonly ((exchange: Exchange) => void)[];
  /** Called with every exception in the request path. */
  readonly reportBug: (error: unknown, exchange: Exchange) => void;
}

/** The part of the usage record that holders of keys may read. */
export interface OwnUsage extends RowSources {
  readonly reader: Pick<UsageReader, 'minutes' | 'operationsOf'>;
  readonly turns: Pick<RecordTurns, 'readDays'>;
  /** The store's clock, epoch ms. */
  readonly nowMs: () => number;
}
