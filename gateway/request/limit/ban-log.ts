import type { Logger } from 'pino';
import type { BanEvent } from '../../shared/model.ts';
import type { Bounds } from '../../shared/timeouts-and-sizes.ts';
import type { QuotaState } from './store/decide-quota.ts';

export type BanLog = ReturnType<typeof createBanLog>;

type BanState = Pick<QuotaState, 'bannedUntilMs' | 'banLevel'>;

/** Two ends so close belong to one ban. When processes ban a key locally, Redis keeps the later end. */
const sameBanMs = 1_000;

/**
 * Logs each ban of a key once at its begin and once at its end. A process learns of a ban from the store's reply to a request of the key. So each process with requests of a banned key logs the
 * ban once. The end of a ban is known in advance, and one timer for all keys checks once a second. A ban that was lifted on another
 * process shows with the key's next request.
 *
 * By default a ban takes a hundred refusals, so there are few log lines. At most `bounds.loggedBansMax` bans are kept.
 */
export function createBanLog(deps: {
  log: Logger;
  /** The store's clock, epoch ms. */
  nowMs: () => number;
  planOf: (keyId: string) => string | undefined;
  /** Receives each logged event. */
  onEvent?: ((event: BanEvent) => void) | undefined;
  bounds: Bounds;
}) {
  const { log, nowMs, planOf, onEvent, bounds } = deps;
  /** The end of each logged ban, by key. */
  const bans = new Map<string, number>();
  const begun = new Map<string, number>();
  let saidFull = false;
  let timer: NodeJS.Timeout | undefined;

  return {
    /** Receives the state of a key after a decision of the store or of this process. `atMs` is on the same clock. */
    observe(keyId: string, { bannedUntilMs, banLevel }: BanState, atMs: number) {
      if (bannedUntilMs > atMs) begin(keyId, bannedUntilMs, banLevel);
      else if (bans.size > 0) endIfKnown(keyId, atMs);
    },
    /** Number of bans that this process has seen, by plan, bans from before its start included. */
    begun: (): ReadonlyMap<string, number> => begun,
    /** The banned keys that this process knows of. */
    keys: (): Iterable<string> => bans.keys(),
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
