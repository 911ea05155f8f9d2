import type { KeyObject } from 'node:crypto';
import type { Logger } from 'pino';
import type { SettingsMembers } from '../../../shared/model.ts';
import type { Bounds } from '../../../shared/timeouts-and-sizes.ts';
import type { GithubKey } from '../schema.ts';
import { publicKeyOf } from './public-key-of.ts';

/**
 * `unknown`: GitHub has no key with this identifier. `away`: the keys could not be fetched since the identifier arrived, so the reporter must
 * retry after `retryMs`.
 */
export type FoundKey =
  | { readonly kind: 'found'; readonly key: KeyObject }
  | { readonly kind: 'unknown' }
  | { readonly kind: 'away'; readonly retryMs: number };

/**
 * The public keys of GitHub, from a file of the configuration or from a URL. This process fetches the URL for an identifier that it does not
 * know, at most once in `leakKeysFetchedMs`. A client that invents identifiers therefore causes no more requests than one report.
 *
 * An identifier is unknown only if a fetch that began after the identifier arrived did not find it. Without this rule, an invented
 * identifier would use up the fetch, and the gateway would refuse a report with a new key of GitHub.
 */
export function createSigningKeys({
  log,
  bounds,
  nowMs = () => performance.now(),
}: {
  readonly log: Pick<Logger, 'error'>;
  readonly bounds: Bounds;
  /** A monotonic clock. */
  readonly nowMs?: () => number;
}) {
  let url: string | undefined;
  let fetched = new Map<string, KeyObject>();
  let fetchedAtMs = Number.NEGATIVE_INFINITY;
  let hasFailed = false;
  let underWay: Promise<void> | undefined;
  /** The unknown identifiers that arrived before the last fetch began, and those that have arrived since then. */
  let before = new Set<string>();
  let since = new Set<string>();

  return {
    async find(
      identifier: string,
      { githubKeys, leaks: { github } }: Pick<SettingsMembers, 'githubKeys' | 'leaks'>,
    ): Promise<FoundKey> {
      if (githubKeys !== undefined)
        return foundIn(keysByIdentifier(githubKeys), identifier) ?? { kind: 'unknown' };
      if (github?.keysUrl === undefined) return { kind: 'unknown' };
      if (github.keysUrl !== url) forget(github.keysUrl);
      if (!fetched.has(identifier)) {
        if (!before.has(identifier) || mayFetch()) note(identifier);
        await (underWay ?? fetchAgain(github.keysUrl));
      }
      // GitHub may have withdrawn a key.
      else if (nowMs() - fetchedAtMs > bounds.leakKeysKeptMs) void fetchAgain(github.keysUrl);
      const found = foundIn(fetched, identifier);
      if (found !== undefined) return found;
      return before.has(identifier) && !hasFailed
        ? { kind: 'unknown' }
        : { kind: 'away', retryMs: fetchedAtMs + bounds.leakKeysFetchedMs - nowMs() };
    },
  };

  /** Called when a reload has changed the URL. */
  function forget(next: string): void {
    url = next;
    fetched = new Map();
    fetchedAtMs = Number.NEGATIVE_INFINITY;
    hasFailed = false;
    underWay = undefined;
    before = new Set();
    since = new Set();
  }

  /** If too many identifiers arrive, the process forgets the oldest one. Its next report then waits for another fetch. */
  function note(identifier: string): void {
    since.add(identifier);
    const [oldest = ''] = since;
    if (since.size > bounds.leakIdentifiersMax) since.delete(oldest);
  }

  function mayFetch(): boolean {
    return nowMs() - fetchedAtMs >= bounds.leakKeysFetchedMs;
  }

  function fetchAgain(from: string): Promise<void> {
    if (!mayFetch()) return Promise.resolve();
    fetchedAtMs = nowMs();
    before = since;
    since = new Set();
    // The code that fetches keys needs Zod, so it is loaded at the first use.
    const fetching = import('./fetch-keys.ts')
      .then(({ fetchKeys }) => fetchKeys(from, bounds))
      .then(
        (keys) => take(from, keysByIdentifier(keys)),
        (error: Error) => take(from, undefined, error),
      );
    underWay = fetching;
    return fetching;
  }

  function take(from: string, keys: Map<string, KeyObject> | undefined, error?: Error): void {
    if (from !== url) return;
    underWay = undefined;
    hasFailed = keys === undefined;
    if (keys !== undefined) fetched = keys;
    else log.error({ url: from, reason: reasonOf(error) }, 'the public keys of GitHub cannot be fetched');
  }
}

/** `fetch` reports only "fetch failed". Its cause has the reason. */
function reasonOf(error: Error | undefined): string | undefined {
  return error?.cause instanceof Error ? error.cause.message : error?.message;
}

function foundIn(keys: ReadonlyMap<string, KeyObject>, identifier: string): FoundKey | undefined {
  const key = keys.get(identifier);
  return key && { kind: 'found', key };
}

const parsed = new WeakMap<readonly GithubKey[], Map<string, KeyObject>>();

/** Parses each list once. */
function keysByIdentifier(keys: readonly GithubKey[]): Map<string, KeyObject> {
  const known = parsed.get(keys);
  if (known !== undefined) return known;
  const entries = keys.flatMap(({ identifier, pem }) => {
    const key = publicKeyOf(pem);
    return key === undefined ? [] : [[identifier, key] as const];
  });
  const byIdentifier = new Map(entries);
  parsed.set(keys, byIdentifier);
  return byIdentifier;
}
