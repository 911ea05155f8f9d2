import type { Logger } from 'pino';
import type { BanEvent } from '../../shared/model.ts';
import type { Bounds } from '../../shared/timeouts-and-sizes.ts';
import type { QuotaState } from './store/decide-quota.ts';

/** Says in the log once when a key is banned, and once when it no longer is. */
export interface BanLog {
  /** Looks at a key's state as the store, or this process alone, has just decided it; `nowMs` on the same clock. */
  observe(keyId: string, state: BanState, nowMs: number): void;
  /** Bans that this process has seen, by plan: also those that began before it was started. */
  begun(): ReadonlyMap<string, number>;
  /** The keys under a ban that it knows of, `bounds.loggedBansMax` at most. */
  keys(): Iterable<string>;
  close(): void;
}

type BanState = Pick<QuotaState, 'bannedUntilMs' | 'banLevel'>;

/** Two instants of one ban: where processes banned a key on their own, Redis keeps the later end. */
const sameBanMs = 1_000;

/**
 * A process only knows of a ban when it asks the store for the key, so each process that has requests of a banned key says
 * so once, also one that was started during the ban. When the ban runs out is known without asking: one timer for all keys
 * looks once a second. That a ban was lifted elsewhere shows with the key's next request.
 *
 * A ban costs its key a hundred refusals by default, so these lines are few. All the same no more than
 * `bounds.loggedBansMax` bans are kept at a time.
 */
export function createBanLog(deps: {
  log: Logger;
  /** The store's clock, epoch ms. */
  nowMs: () => number;
  planOf: (keyId: string) => string | undefined;
  /** Hears what is logged. */
  onEvent?: ((event: BanEvent) => void) | undefined;
  bounds: Pick<Bounds, 'loggedBansMax' | 'banEndIntervalMs'>;
}): BanLog {
  const { log, nowMs, planOf, onEvent, bounds } = deps;
  /** By key, when the ban ends that was logged. */
  const bans = new Map<string, number>();
  const begun = new Map<string, number>();
  let saidFull = false;
  let timer: NodeJS.Timeout | undefined;

  return {
    observe(keyId, { bannedUntilMs, banLevel }, atMs) {
      if (bannedUntilMs > atMs) begin(keyId, bannedUntilMs, banLevel);
      else if (bans.size > 0) endIfKnown(keyId, atMs);
    },
    begun: () => begun,
    keys: () => bans.keys(),
    close: () => clearTimeout(timer),
  };

  function begin(keyId: string, untilMs: number, banLevel: number): void {
    const knownUntilMs = bans.get(keyId);
    if (knownUntilMs === untilMs) return;
    if (knownUntilMs === undefined && bans.size >= bounds.loggedBansMax) {
      sayFull();
      return;
    }
    bans.set(keyId, untilMs);
    timer ??= setTimeout(endExpired, bounds.banEndIntervalMs).unref();
    if (knownUntilMs !== undefined && Math.abs(untilMs - knownUntilMs) < sameBanMs) return;
    const until = new Date(untilMs).toISOString();
    const plan = planOf(keyId);
    begun.set(plan ?? '', (begun.get(plan ?? '') ?? 0) + 1);
    log.warn({ keyId, plan, banLevel, until }, 'a key is banned');
    onEvent?.({ kind: 'ban', keyId, plan, level: banLevel, untilMs });
  }

  function endIfKnown(keyId: string, atMs: number): void {
    const untilMs = bans.get(keyId);
    if (untilMs !== undefined) end(keyId, untilMs, untilMs <= atMs ? 'expired' : 'lifted');
  }

  function endExpired(): void {
    timer = undefined;
    const atMs = nowMs();
    for (const [keyId, untilMs] of bans) if (untilMs <= atMs) end(keyId, untilMs, 'expired');
    if (bans.size > 0) timer = setTimeout(endExpired, bounds.banEndIntervalMs).unref();
  }

  function end(keyId: string, untilMs: number, ended: 'expired' | 'lifted'): void {
    bans.delete(keyId);
    saidFull = false;
    const plan = planOf(keyId);
    log.warn({ keyId, plan, ended }, 'a key is no longer banned');
    onEvent?.({ kind: 'ban_ended', keyId, plan, untilMs, ended });
  }

  function sayFull(): void {
    if (saidFull) return;
    saidFull = true;
    log.warn(`more than ${bounds.loggedBansMax} keys are banned; further bans are not logged until one ends`);
  }
}
