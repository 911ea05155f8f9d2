import type { Logger } from 'pino';
import type { Exchange } from '../request/exchange.ts';
import { isoOf } from '../shared/schema/dates-and-durations.ts';
import type { Bounds } from '../shared/timeouts-and-sizes.ts';

/** A trusted proxy whose entries in `X-Forwarded-For` are no addresses. */
export interface UnreadForwardedFor {
  readonly proxy: string;
  /** The form of the last such entry. */
  readonly form: string;
  /** The time of the first such entry, ISO 8601 in UTC. */
  readonly sinceAt: string;
}

/**
 * Reports entries of `X-Forwarded-For` that are no addresses. The clients of the proxy that writes such entries share one address. Every
 * client may cause such entries if the proxy is wrongly configured, so the log has at most one line per interval.
 */
export function createForwardedForWatch(
  log: Logger,
  { nowMs, bounds }: { /** Epoch ms. */ readonly nowMs: () => number; readonly bounds: Bounds },
) {
  const { forwardedForIntervalMs } = bounds;
  let last: (UnreadForwardedFor & { readonly atMs: number }) | undefined;
  let loggedMs = Number.NEGATIVE_INFINITY;
  let requests = 0;

  function current(): typeof last {
    return last !== undefined && nowMs() - last.atMs < forwardedForIntervalMs ? last : undefined;
  }

  return {
    ended({ origin }: Exchange): void {
      if (origin?.unreadEntry === undefined) return;
      const { proxy, entry } = origin.unreadEntry;
      const atMs = nowMs();
      last = { proxy, form: formOf(entry), sinceAt: current()?.sinceAt ?? isoOf(atMs), atMs };
      requests += 1;
      if (atMs - loggedMs < forwardedForIntervalMs) return;
      const text = 'a trusted proxy writes entries of X-Forwarded-For that are no addresses';
      log.warn({ proxy, form: last.form, requests }, text);
      loggedMs = atMs;
      requests = 0;
    },
    /** The proxy of the last such entry; undefined without one for `forwardedForIntervalMs`. */
    state(): UnreadForwardedFor | undefined {
      const unread = current();
      return unread && { proxy: unread.proxy, form: unread.form, sinceAt: unread.sinceAt };
    },
  };
}

const formCharsMax = 40;

/** Replaces letters by `a` and digits by `0`, because a client may have put a secret into the field. */
function formOf(entry: string): string {
  if (entry.toLowerCase() === 'unknown') return 'unknown';
  return entry
    .slice(0, formCharsMax)
    .replaceAll(/[^\x20-\x7e]/g, '?')
    .replaceAll(/[A-Za-z]/g, 'a')
    .replaceAll(/\d/g, '0');
}
