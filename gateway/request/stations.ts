import type { KeyChange } from '../fleet/changes.ts';
import type { KeyDirectory } from '../keys/directory/key-directory.ts';
import type { BlockedSecrets } from '../keys/leaks/blocked/blocked-secrets.ts';
import type { AtTurnEnd } from '../shared/event-loop-batch.ts';
import type { KeyMembers } from '../shared/model.ts';
import type { Bounds } from '../shared/timeouts-and-sizes.ts';
import type { Exchange } from './exchange.ts';
import type { Forwarder } from './forward/forwarder.ts';
import type { Limiter } from './limit/limiter.ts';
import type { UnreadPages } from './pages/unread-pages.ts';

/** The stateful steps of the request path, and its other dependencies. */
export interface Stations {
  readonly limiter: Limiter;
  /** Reads the members of keys that belong to capabilities; undefined for a key whose store does not reply. */
  readonly readKeyMembers: (keyIds: readonly string[]) => Promise<readonly (KeyMembers | undefined)[]>;
  readonly forwarder: Forwarder;
  /** The key directory; undefined when all keys are in the configuration. */
  readonly directory:
    | Pick<KeyDirectory, 'lookUp' | 'readAgain' | 'confirm' | 'drop' | 'read' | 'replace'>
    | undefined;
  /** The leaked secrets of the configuration. */
  readonly blocked: Pick<BlockedSecrets, 'has' | 'read' | 'readAgain'>;
  readonly atTurnEnd: AtTurnEnd;
  readonly unreadPages: UnreadPages;
  /** Records a change that a key holder or a report of a leaked secret has made, so that operators see it. */
  readonly recordKeyChange: (change: KeyChange) => void;
  readonly bounds: Bounds;
  /** The gateway's clock, epoch ms. The limiter uses the store's clock, not this clock. */
  readonly nowMs: () => number;
  /** Called with every exception in the request path. */
  readonly reportBug: (error: unknown, exchange: Exchange) => void;
}
