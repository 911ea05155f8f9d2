import type { KeyVersion } from '../../keys/directory/directory-key.ts';
import { offeredOf } from '../../usage/tally.ts';
import type { SecretUse, UsageMinute } from '../../usage/usage-reader.ts';
import { findKeys, statusesOf } from './find-keys.ts';
import { type KeyItem, keyItem } from './key-item.ts';
import type { KeySources } from './key-sources.ts';
import { rowOf, type UsageRow } from './usage-rows.ts';
import { type Why, why } from './why.ts';

const hourMs = 3_600_000;
const dayMs = 24 * hourMs;
const recentRefusalsMax = 20;

export interface KeyDetail extends KeyItem {
  /** The revision of the key in the directory. It grows with each change, and is a part of the `ETag`. */
  readonly revision?: number;
  readonly operations?: readonly string[];
  readonly secrets: readonly {
    readonly digestStart: string;
    readonly createdAt?: string;
    /** The last request with this secret on record. */
    readonly lastUsedAt?: string;
    /** Requests that presented it while it was not valid: it had expired, or the key was disabled. */
    readonly unauthorized?: { readonly requests: number; readonly lastAt: string };
    readonly expiresAt?: string;
    readonly isExpired: boolean;
  }[];
  /** Refusals that count towards the next ban. */
  readonly strikes: number;
  readonly operations24h?: readonly {
    readonly operationId: string;
    readonly requests: number;
    readonly clientErrors: number;
    readonly serverErrors: number;
  }[];
  /** The last minutes of the last 24 hours in which something was refused, latest first. */
  readonly recentRefusals?: readonly UsageRow[];
  readonly why: Why;
}

/** Everything about one key. @returns undefined when there is no such key; `no_store` when the store gives no answer */
export async function showKey(
  sources: KeySources,
  id: string,
): Promise<
  { readonly detail: KeyDetail; readonly version?: KeyVersion | undefined } | 'no_store' | undefined
> {
  const found = await findKeys(sources, [id]);
  if (found === undefined) return 'no_store';
  const [listed] = found;
  if (listed === undefined) return undefined;
  const { key, secrets, others, version } = listed;
  const { usage } = sources;
  const nowMs = sources.nowMs();
  const period = { fromMs: Math.floor(nowMs / 60_000) * 60_000 - dayMs + 60_000, toMs: nowMs };
  const [statuses, recorded] = await Promise.all([
    statusesOf(sources, found),
    usage &&
      Promise.all([
        usage.reader.recent([id], nowMs),
        usage.reader.minutes(id, period),
        usage.reader.operationsOf(id, period),
        usage.reader.addresses(id, { fromMs: nowMs, toMs: nowMs }),
        usage.reader.secretsUsed(
          id,
          secrets.map(({ digestStart }) => digestStart),
          { fromMs: nowMs - (usage.state().keptDays - 1) * dayMs, toMs: nowMs },
        ),
      ]),
  ]);
  const status = statuses?.get(id);
  if (status === undefined) return 'no_store';
  const [recent, minutes, operations, addresses, secretsUsed] = recorded ?? [];
  if (usage && !(recent && minutes && operations && addresses && secretsUsed)) return 'no_store';
  const facts = { ...listed, status, nowMs };
  const item = keyItem({ ...facts, recent: usage ? recent?.get(id) : 'off' });
  const startOfHourMs = Math.floor(nowMs / hourMs) * hourMs;
  const detail: KeyDetail = {
    ...item,
    ...others,
    ...(version && { revision: version.revision }),
    ...(key.operations && { operations: key.operations }),
    secrets: secrets
      .toSorted((a, b) => a.expiresMs - b.expiresMs)
      .map(({ digestStart, expiresMs, createdMs }) => {
        const use = secretsUsed?.get(digestStart);
        return {
          digestStart,
          ...(createdMs !== undefined && { createdAt: new Date(createdMs).toISOString() }),
          ...(use && use.lastMs > 0 && { lastUsedAt: new Date(use.lastMs).toISOString() }),
          ...(use && use.unauthorized > 0 && { unauthorized: unauthorizedOf(use) }),
          ...(Number.isFinite(expiresMs) && { expiresAt: new Date(expiresMs).toISOString() }),
          isExpired: expiresMs <= nowMs,
        };
      }),
    strikes: status.strikes,
    ...(usage &&
      minutes &&
      operations && {
        operations24h: byOperation(operations),
        recentRefusals: minutes.filter(isRefusing).slice(-recentRefusalsMax).reverse().map(rowOf),
      }),
    why: why({
      ...facts,
      state: item.state,
      ...(usage &&
        minutes &&
        operations &&
        addresses && {
          recorded: {
            minutes,
            operations: operations.filter(({ atMs }) => atMs >= startOfHourMs),
            addresses,
            keptDays: usage.state().keptDays,
          },
        }),
    }),
  };
  return { detail, version };
}

function unauthorizedOf({ unauthorized, lastUnauthorizedMs }: SecretUse) {
  return { requests: unauthorized, lastAt: new Date(lastUnauthorizedMs).toISOString() };
}

function isRefusing({ tally }: UsageMinute): boolean {
  return tally.admitted < offeredOf(tally);
}

interface Calls {
  readonly operationId: string;
  readonly requests: number;
  readonly clientErrors: number;
  readonly serverErrors: number;
}

function byOperation(hours: readonly Calls[]): Calls[] {
  return [...Map.groupBy(hours, ({ operationId }) => operationId)]
    .map(([operationId, all]) => ({
      operationId,
      requests: all.reduce((sum, { requests }) => sum + requests, 0),
      clientErrors: all.reduce((sum, { clientErrors }) => sum + clientErrors, 0),
      serverErrors: all.reduce((sum, { serverErrors }) => sum + serverErrors, 0),
    }))
    .sort((a, b) => b.requests - a.requests);
}
