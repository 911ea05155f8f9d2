import type { Logger } from 'pino';
import type { BanEvent } from '../../fleet/kinds/bans.ts';
import { handBanOf } from '../../quota/bans.ts';
import type { QuotaState } from '../../quota/hash.ts';
import type { Bounds } from '../../shared/timeouts-and-sizes.ts';

export type BanLog = ReturnType<typeof createBanLog>;

type BanState = Pick<QuotaState, 'bannedUntilMs' | 'banLevel' | 'handBan'>;

/**
 * If two reported ends of a key's ban differ by less than this time, they belong to the same ban. If several processes ban a key locally at
 * the same time, Redis stores the ban that ends last.
 */
const sameBanMs = 1_000;

/**
 * Logs each ban of a key once at its start and once at its end, in each process that serves requests of the key. A process detects a ban in
 * the store's reply to a request, which contains the end of the ban. It detects a lifted ban with the key's next request. A timer checks
 * once a second which bans have ended.
 *
 * By default, a key is banned only after a hundred refusals, so there are few log lines. The log remembers at most `bounds.loggedBansMax`
 * bans.
 */
export function createBanLog(deps: {
  log: Logger;
  /** The store's clock, epoch ms. */
  nowMs: () => number;
  planOf: (keyId: string) => string | undefined;
  /** Called with each logged ban and each logged end of a ban. */
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
    /** Receives the state of a key after each decision. @param atMs the time of the decision, on the store's clock */
    observe(keyId: string, state: BanState, atMs: number) {
      if (state.bannedUntilMs > atMs) begin(keyId, state);
      else if (bans.size > 0) endIfKnown(keyId, atMs);
    },
    /** The number of bans that this process has detected, by plan. The number includes bans that began before this process started. */
    begun: (): ReadonlyMap<string, number> => begun,
    /** The ids of the keys whose running bans this process has detected. */
    keys: (): Iterable<string> => bans.keys(),
    close: () => clearTimeout(timer),
  };

  function begin(keyId: string, { bannedUntilMs: untilMs, banLevel, ...state }: BanState): void {
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
    const handBan = handBanOf({ bannedUntilMs: untilMs, ...state });
    const byHand = handBan && { byHand: true, reason: handBan.reason };
    log.warn({ keyId, plan, banLevel, until, ...byHand }, 'a key is banned');
    onEvent?.({ kind: 'ban', keyId, plan, level: banLevel, untilMs, ...byHand });
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
