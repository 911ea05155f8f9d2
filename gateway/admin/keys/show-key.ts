import type { Changes } from '../../fleet/changes.ts';
import type { KeyVersion } from '../../keys/directory/directory-key.ts';
import type { RawKey } from '../../keys/key-schema.ts';
import { ownGroupsOf, toLimitFields, withGroups } from '../../keys/limits/limit-fields.ts';
import { type LaterTerms, laterTerms } from '../../keys/plans/plans.ts';
import { countingStrikes } from '../../quota/bans.ts';
import { calendarStartMs } from '../../shared/calendar-windows.ts';
import { groupNames } from '../../shared/limits.ts';
import { countedBy, type Key } from '../../shared/model.ts';
import { isoOf, isoOfEnd } from '../../shared/schema/dates-and-durations.ts';
import { dayMs } from '../../shared/words/figures.js';
import type { RecentUsage, SecretUse, UsageMinute } from '../../usage/read/usage-reader.ts';
import { rowOf } from '../../usage/read/usage-rows.ts';
import { offeredOf, sumOf, unitsOf } from '../../usage/tally.ts';
import { noteMissing } from '../api/missing-data.ts';
import { trialOfKeyView } from '../plans/trial-figures.ts';
import type { KeyDetail } from '../wires/keys/key.ts';
import { statedKeyView } from './change/definition.ts';
import { findKeys, statusesOf } from './find-keys.ts';
import { keyItemOf, leakView } from './key-item.ts';
import type { KeyDetailSources } from './key-sources.ts';
import { limitBeginnings, type RecordedUse } from './over-time/limit-beginnings.ts';
import { why } from './why.ts';

const recentRefusalsMax = 20;

/** @returns undefined when the key does not exist; `no_store` when the store does not reply */
export async function showKey(
  sources: KeyDetailSources,
  changes: Pick<Changes, 'read'>,
  id: string,
): Promise<
  { readonly detail: KeyDetail; readonly version?: KeyVersion | undefined } | 'no_store' | undefined
> {
  const found = await findKeys(sources, [id]);
  if (found === undefined) return 'no_store';
  const [listed] = found;
  if (listed === undefined) return undefined;
  const { key, secrets, stated: asStated, version } = listed;
  const { limits: _, disabled: __, secrets: ___, ...members }: Partial<RawKey> = asStated ?? {};
  const { usage } = sources;
  const nowMs = sources.nowMs();
  const period = { fromMs: Math.floor(nowMs / 60_000) * 60_000 - dayMs + 60_000, toMs: nowMs };
  const [statuses, [ofCapabilities], recorded] = await Promise.all([
    statusesOf(sources, found),
    sources.readMembers([id]),
    usage &&
      Promise.all([
        usage.reader.recent([id], nowMs),
        usage.reader.minutes(id, period, groupNames(key.limits)),
        usage.reader.operationsOf(id, period),
        usage.reader.addresses(id, { fromMs: nowMs, toMs: nowMs }),
        usage.reader.refusedNetworks(id, period),
        usage.reader.secretsUsed(
          id,
          secrets.map(({ digestStart }) => digestStart),
          { fromMs: nowMs - (usage.state().keptDays - 1) * dayMs, toMs: nowMs },
        ),
        key.trial === undefined ? [] : usage.reader.trialOf([id], key.trial, period),
      ]),
  ]);
  const status = statuses?.get(id);
  if (status === undefined) return 'no_store';
  if (ofCapabilities === undefined) noteMissing('details of keys');
  const [recent, minutes, operations, addresses, refusedNetworks, secretsUsed, ofTrial] = recorded ?? [];
  const isRecorded =
    recent && minutes && operations && addresses && refusedNetworks && secretsUsed && ofTrial;
  if (usage && !isRecorded) return 'no_store';
  const begun = await limitBeginnings(sources, changes, { listed, status }, recordedUses(minutes, nowMs));
  const facts = { ...listed, status, begun, counted: countedBy(sources.settings().operations), nowMs };
  const item = keyItemOf({ ...facts, recent: usage ? recentIn(recent?.get(id), minutes) : 'off' });
  const later = laterTerms(key, sources.settings().plans, nowMs).map((one) => upcomingOf(one, key));
  const detail: KeyDetail = {
    ...members,
    ...item,
    definition: asStated && statedKeyView(asStated, secrets),
    revision: version?.revision,
    upcoming: later.length > 0 ? later : undefined,
    concurrent: key.concurrent,
    operations: key.operations,
    secrets: secrets
      .toSorted((a, b) => a.expiresMs - b.expiresMs)
      .map(({ digestStart, expiresMs, createdMs, issuedFrom, leak }) => {
        const use = secretsUsed?.get(digestStart);
        return {
          digestStart,
          createdAt: isoOf(createdMs),
          lastUsedAt: isoOf(use?.lastMs || undefined),
          unauthorized: use && unauthorizedOf(use),
          expiresAt: isoOfEnd(expiresMs),
          isExpired: expiresMs <= nowMs,
          issuedFrom,
          leak: leak && leakView(leak),
        };
      }),
    strikes: countingStrikes(status, sources.settings().bans, status.rateLimit.nowMs),
    ...ofCapabilities,
    operations24h: operations && byOperation(operations),
    recentRefusals: minutes?.filter(isRefusing).slice(-recentRefusalsMax).reverse().map(rowOf),
    trial: key.trial && ofTrial?.[0] && trialOfKeyView(key.trial, ofTrial[0], nowMs),
    why: why({
      ...facts,
      later,
      state: item.state,
      recorded:
        usage && isRecorded
          ? {
              minutes,
              operations,
              addresses,
              refusedNetworks,
              keptDays: usage.state().keptDays,
            }
          : undefined,
    }),
  };
  return { detail, version };
}

/** The sums of the minutes that the page shows. While Redis is away, sums of hours can be of another time. */
function recentIn(
  recent: RecentUsage | 'unknown' | undefined,
  minutes: readonly UsageMinute[] = [],
): RecentUsage | 'unknown' | undefined {
  if (typeof recent !== 'object') return recent;
  const tally = sumOf(minutes.map((minute) => minute.tally));
  return { ...recent, offered: offeredOf(tally), admitted: tally.admitted, units: unitsOf(tally) };
}

/** The recorded units of the last 24 hours in the present day and month. */
function recordedUses(minutes: readonly UsageMinute[] = [], nowMs: number): readonly RecordedUse[] {
  return (['day', 'month'] as const).map((window) => {
    const startMs = calendarStartMs(window, nowMs);
    const within = minutes.filter(({ atMs }) => atMs >= startMs);
    return { window, units: within.reduce((sum, { tally }) => sum + unitsOf(tally), 0) };
  });
}

function upcomingOf({ fromMs, plan, limits }: LaterTerms, key: Pick<Key, 'limits' | 'ownGroups'>) {
  return { fromAt: isoOf(fromMs), plan, limits: toLimitFields(withGroups(limits, ownGroupsOf(key))) };
}

function unauthorizedOf({ unauthorized, lastUnauthorizedMs }: SecretUse) {
  return unauthorized > 0 ? { requests: unauthorized, lastAt: isoOf(lastUnauthorizedMs) } : undefined;
}

function isRefusing({ tally, unauthorized = 0 }: UsageMinute): boolean {
  return tally.admitted < offeredOf(tally) + unauthorized;
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
