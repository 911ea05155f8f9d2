import { countedRefusals } from '../../../capabilities/lists/words.js';
import type { Changes, RecordedChange } from '../../../fleet/changes.ts';
import type { Events } from '../../../fleet/events.ts';
import type { GatewayEvent } from '../../../fleet/kinds/kinds.ts';
import type { Listed } from '../../../fleet/shared-list.ts';
import { timeText } from '../../../fleet/wording.ts';
import { toLimits } from '../../../keys/limits/limit-fields.ts';
import { isGone, mayCall } from '../../../request/route/operation-table.ts';
import { calendarStartMs } from '../../../shared/calendar-windows.ts';
import { groupNames } from '../../../shared/limits.ts';
import { countedBy, type Key, type Settings } from '../../../shared/model.ts';
import type { Period } from '../../../shared/schema/dates-and-durations.ts';
import { counted, dayMs, hourMs, minuteMs } from '../../../shared/words/figures.js';
import { minuteOfHour } from '../../../usage/usage-calendar.ts';
import { errorResponse, jsonResponse, storeUnavailable } from '../../admin-response.ts';
import { lacksData } from '../../api/missing-data.ts';
import { defineRoute, type Route } from '../../api/route.ts';
import { readPages } from '../../read-pages.ts';
import type { WhyMinute } from '../../wires/keys/why.ts';
import { getKeyMinuteWire } from '../../wires/keys/why.ts';
import { findKeys, type ListedKey, statusesOf } from '../find-keys.ts';
import { fixedState } from '../key-item.ts';
import { type KeySources, noSuchKey } from '../key-sources.ts';
import { limitsOverTime } from '../over-time/limits-over-time.ts';
import { readChanges } from '../over-time/limits-route.ts';
import { explainMinute, type PastBan, type PastOutage } from './explain-minute.ts';

interface Lists {
  readonly changes: Pick<Changes, 'read'>;
  readonly events: Pick<Events, 'read'>;
}

/** `GET /keys/{id}/why` explains the refusals of a key in one minute. */
export function minuteRoute(keys: KeySources, lists: Lists): Route {
  return defineRoute({
    ...getKeyMinuteWire,
    needs: 'read',
    readsCounts: true,
    async respond({ params: { id = '' }, query }) {
      const { usage } = keys;
      const nowMs = keys.nowMs();
      const atMs = calendarStartMs('minute', query.at ?? nowMs);
      if (atMs > nowMs)
        return errorResponse('invalid_request', 'The query parameter `at` must not be in the future.');
      if (usage === undefined) {
        const message =
          'No minute is recorded, because `usage.keepDays` is 0. The log has a line for each request.';
        return errorResponse('invalid_request', message);
      }
      const { keptDays } = usage.state();
      if (atMs < calendarStartMs('day', nowMs) - keptDays * dayMs) {
        const message = `The minute ${timeText(atMs, nowMs)} is no longer recorded. Minutes are kept for ${counted(keptDays, 'day')}, and older usage by day.`;
        return errorResponse('invalid_request', message);
      }
      const found = await findKeys(keys, [id]);
      const [listed] = found ?? [];
      if (found !== undefined && listed === undefined) return noSuchKey();
      const explained = listed && (await readMinute({ ...keys, usage }, lists, listed, { atMs, nowMs }));
      return explained === undefined ? storeUnavailable() : jsonResponse(explained);
    },
  });
}

type Sources = KeySources & { readonly usage: NonNullable<KeySources['usage']> };

/** Reads what is recorded about a minute. The result is undefined when a store does not reply. */
async function readMinute(
  sources: Sources,
  lists: Lists,
  listed: ListedKey,
  { atMs, nowMs }: { readonly atMs: number; readonly nowMs: number },
): Promise<WhyMinute | undefined> {
  const { key, secrets } = listed;
  const { id } = key;
  const { reader } = sources.usage;
  const settings = sources.settings();
  const hour = { fromMs: calendarStartMs('hour', atMs), toMs: calendarStartMs('hour', atMs) + hourMs - 1 };
  const day = { fromMs: calendarStartMs('day', atMs), toMs: calendarStartMs('day', atMs) + dayMs - 1 };
  const minute = { fromMs: atMs, toMs: atMs + minuteMs - 1 };
  const [statuses, changes, events] = await Promise.all([
    statusesOf(sources, [listed]),
    readChanges(lists.changes, sources.bounds),
    readEvents(lists.events, sources.bounds.eventsPerPageMax),
  ]);
  const status = statuses?.get(id);
  if (status === undefined) return undefined;
  const limits = limitsOverTime({
    key,
    stated: listed.stated,
    plans: settings.plans,
    planStates: settings.planStates,
    grant: status.grant,
    changes,
    // A change in the day before the minute is named in the sentence about its limit.
    fromMs: atMs - dayMs,
    toMs: nowMs,
  });
  const groups = new Set(
    [key.limits, ...limits.map((step) => toLimits(step.limits))].flatMap((some) => groupNames(some)),
  );
  const digests = secrets.map(({ digestStart }) => digestStart);
  const known = settings.upstreams.map(({ name }) => name);
  const [minutesOfHour, secretsOfDay, networksOfHour, operations, refusalsOfHour, failed, ofTrial] =
    await Promise.all([
      reader.minutes(id, hour, [...groups]),
      reader.secretsUsed(id, digests, day),
      reader.refusedNetworks(id, hour),
      reader.operationsOf(id, hour),
      reader.refusalsOf(
        id,
        countedRefusals.map(({ name }) => name),
        hour,
      ),
      reader.failedUnits([id], minute, { known }),
      key.trial === undefined ? [] : reader.trialOf([id], key.trial, minute),
    ]);
  const hoursFailed = failed?.[0];
  if (
    minutesOfHour === undefined ||
    secretsOfDay === undefined ||
    networksOfHour === undefined ||
    operations === undefined ||
    refusalsOfHour === undefined ||
    hoursFailed === undefined ||
    ofTrial === undefined
  )
    return undefined;
  const [trialUsage] = ofTrial;
  return explainMinute({
    key,
    atMs,
    nowMs,
    counted: countedBy(settings.operations),
    minutesOfHour,
    lacksRequests: lacksData(),
    limits,
    bans: bansIn(events, changes, id, minute),
    outages: outagesIn(events, minute),
    countsAlone: settings.redis?.onFailure === 'local',
    secrets,
    secretsOfDay,
    disabledBecause: disabledBecause(listed, changes, minute, nowMs),
    networksOfHour,
    operationsOfHour: operations.map((one) => ({
      ...one,
      remark: remarkOn(one.operationId, key, settings, atMs),
    })),
    refusalsOfHour,
    failed: hoursFailed
      .filter(({ bucket }) => bucket === 'plan')
      .flatMap(({ upstream, minutes }) =>
        minutes
          .filter((one) => one.minute === minuteOfHour(atMs / minuteMs))
          .map(({ units }) => ({ upstream, units })),
      ),
    trial: key.trial && trialUsage && { limits: key.trial, usage: trialUsage },
  });
}

function readEvents(events: Lists['events'], limit: number): Promise<readonly Listed<GatewayEvent>[]> {
  return readPages(
    async (after) => {
      const { events: entries, next } = await events.read({ limit, after });
      return { entries, next };
    },
    () => false,
  );
}

/**
 * Returns the recorded bans of a key that overlap a period. An operator may have lifted a ban before its end. The record of changes has the
 * bans by hand.
 */
function bansIn(
  events: readonly Listed<GatewayEvent>[],
  changes: readonly RecordedChange[],
  id: string,
  { fromMs, toMs }: Period,
): readonly PastBan[] {
  const lifted = changesOf(changes, id, ['unban']).map(({ at }) => Date.parse(at));
  const byHand = changesOf(changes, id, ['ban']).map(({ at, by, after }) => ({
    at,
    untilAt: String(typeof after === 'object' && 'untilAt' in after ? after.untilAt : ''),
    by,
  }));
  const automatic = events.filter(
    ({ kind, key, untilAt }) =>
      kind === 'ban' && key === id && !byHand.some((ban) => ban.untilAt === untilAt),
  );
  return [...byHand, ...automatic.map(({ at, untilAt = '' }) => ({ at, untilAt, by: undefined }))]
    .map(({ at, untilAt, by }): PastBan => {
      const [beganMs, endMs] = [Date.parse(at), Date.parse(untilAt)];
      const liftedMs = lifted.find((atMs) => atMs >= beganMs && atMs < endMs);
      return { fromMs: beganMs, toMs: liftedMs ?? endMs, isLifted: liftedMs !== undefined, by };
    })
    .filter((ban) => ban.fromMs <= toMs && ban.toMs > fromMs)
    .sort((a, b) => a.fromMs - b.fromMs);
}

/** Returns the recorded outages of Redis that have ended and overlap a period. */
function outagesIn(events: readonly Listed<GatewayEvent>[], { fromMs, toMs }: Period): readonly PastOutage[] {
  return events
    .flatMap(({ kind, beganAt, at, server }) =>
      kind === 'store_back' && beganAt !== undefined
        ? [{ fromMs: Date.parse(beganAt), toMs: Date.parse(at), server }]
        : [],
    )
    .filter((outage) => outage.fromMs <= toMs && outage.toMs > fromMs);
}

/**
 * Returns why every request of the key got 401. The record of changes has the revocations of directory keys. The present
 * state is stated only if the record has none.
 */
function disabledBecause(
  { key, source, secrets }: ListedKey,
  changes: readonly RecordedChange[],
  { toMs }: Period,
  nowMs: number,
): string | undefined {
  const recorded = changesOf(changes, key.id, ['revoke', 'restore']);
  const last = recorded.findLast(({ at }) => Date.parse(at) <= toMs);
  if (last?.action === 'revoke') return `The key was revoked at ${timeText(Date.parse(last.at), toMs)}`;
  if (recorded.length > 0 || fixedState(key, secrets, nowMs) !== 'disabled') return undefined;
  if (!key.disabled) return 'The key has no limits in the configuration now';
  return source === 'file' ? 'The key is disabled in the configuration now' : 'The key is revoked now';
}

/** Returns the successful changes of a key with these actions, the oldest first. */
function changesOf(changes: readonly RecordedChange[], id: string, actions: readonly string[]) {
  return changes
    .filter(
      (change) =>
        'key' in change && change.key === id && change.error === undefined && actions.includes(change.action),
    )
    .toReversed();
}

/** Says why requests for an operation are refused after the limits have admitted them. */
function remarkOn(operationId: string, key: Key, { operations }: Settings, atMs: number): string | undefined {
  const operation = operations.find(({ id }) => id === operationId);
  if (operation === undefined) return undefined;
  if (!mayCall(key, operation)) return 'the key may not call it now';
  return isGone(operation, atMs) ? 'removed' : undefined;
}
