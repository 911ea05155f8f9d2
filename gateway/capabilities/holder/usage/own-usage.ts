import type { Authenticated } from '../../../request/exchange.ts';
import { mayCall } from '../../../request/route/operation-table.ts';
import type { Stations } from '../../../request/stations.ts';
import type { Refusal } from '../../../shared/errors.ts';
import { groupNames } from '../../../shared/limits.ts';
import type { Operation } from '../../../shared/model.ts';
import { isoOf } from '../../../shared/schema/dates-and-durations.ts';
import { dayMs } from '../../../shared/words/figures.js';
import type { UsageReader } from '../../../usage/read/usage-reader.ts';
import { type RowSources, usageRows } from '../../../usage/read/usage-rows.ts';
import type { Days, RecordTurns } from './record-turns.ts';

/** Data for the holder of a key, or the refusal. */
export type HolderData =
  | { readonly kind: 'json'; readonly value: object }
  | { readonly kind: 'refused'; readonly refusal: Refusal };

interface Reader {
  /** Undefined without a usage record. */
  readonly ownUsage: OwnUsage | undefined;
  /** The name of the reader, whose reads run one after the other: the id of the key, or the name of a link. */
  readonly turn: string;
}

/** Reads the usage of a key. The rows have the form of the admin API's rows. */
export async function usageOf(
  { key, target, res }: Reading,
  { ownUsage, turn, bounds, nowMs }: Reader & Pick<Stations, 'bounds' | 'nowMs'>,
): Promise<HolderData> {
  const [, search = ''] = target.split(/\?(.*)/s);
  // The schema of the query needs Zod, so it is loaded at the first use.
  const { parseUsageQuery } = await import('./usage-query.ts');
  const parsed = parseUsageQuery(search, ownUsage?.nowMs() ?? nowMs(), bounds);
  if (parsed.kind === 'invalid') return invalid(parsed);
  const { step, period } = parsed;
  if (ownUsage === undefined) return { kind: 'json', value: { step, rows: [] } };
  // The totals are read once for all days of a request.
  let totals: ReturnType<typeof ownUsage.totals> | undefined;
  const usage = { ...ownUsage, totals: (ids: readonly string[]) => (totals ??= ownUsage.totals(ids)) };
  const rows = await ownUsage.turns.readDays(turn, res, period, (day) =>
    usageRows(usage, key.id, { ...day, step, groups: groupNames(key.limits) }, ownUsage.nowMs(), 'totals'),
  );
  return inJson(rows, (all) => ({ step, rows: all }));
}

/** The members of an exchange that are needed to read the usage record. */
type Reading = Pick<Authenticated, 'key' | 'target' | 'snapshot'> & {
  readonly res: Pick<Authenticated['res'], 'isAnswerable'>;
};

function inJson<Row>(days: Days<Row>, bodyOf: (rows: readonly Row[]) => object): HolderData {
  if (typeof days !== 'string') return { kind: 'json', value: bodyOf(days) };
  return { kind: 'refused', refusal: { ...unreadRefusals[days], fields: ['Retry-After', '1'] } };
}

/** The refusals when the store of the usage record does not reply, and when too many reads of the record are in progress. */
const unreadRefusals: Readonly<Record<'unread' | 'busy', Refusal>> = {
  unread: { code: 'store_unavailable', message: 'The usage record cannot be read now. Retry in 1 s.' },
  busy: {
    code: 'rate_limited',
    message: 'Too many requests for the usage of API keys are in progress. Retry in 1 s.',
  },
};

function invalid({ message }: { readonly message: string }): HolderData {
  return { kind: 'refused', refusal: { code: 'invalid_request', message } };
}

/**
 * Reads which deprecated operations the key has called within the last `ownUsageDaysMax` days. If the usage record keeps fewer days, only
 * these days are read. The operations are sorted by sunset, the earliest first.
 */
export async function deprecatedCallsOf(
  { key, res, snapshot: { settings } }: Reading,
  { ownUsage, turn, bounds }: Reader & Pick<Stations, 'bounds'>,
): Promise<HolderData> {
  const deprecated = settings.operations
    .filter((operation) => operation.deprecation !== undefined && mayCall(key, operation))
    .sort((a, b) => endOf(a) - endOf(b))
    .slice(0, bounds.ownDeprecatedOperationsMax);
  if (ownUsage === undefined || deprecated.length === 0) return { kind: 'json', value: { operations: [] } };
  const toMs = ownUsage.nowMs();
  const days = Math.min(bounds.ownUsageDaysMax, ownUsage.state().keptDays);
  const period = { fromMs: toMs - days * dayMs, toMs };
  const ids = deprecated.map(({ id }) => id);
  const hours = await ownUsage.turns.readDays(turn, res, period, (day) =>
    ownUsage.reader.operationsOf(key.id, day, ids),
  );
  return inJson(hours, (all) => {
    const byId = Map.groupBy(all, ({ operationId }) => operationId);
    const operations = deprecated.flatMap((operation) => {
      const called = byId.get(operation.id);
      return called === undefined ? [] : [callsView(operation, called, settings.basePath)];
    });
    return { operations };
  });
}

function endOf({ deprecation }: Operation): number {
  return deprecation?.sunsetMs ?? Number.POSITIVE_INFINITY;
}

function callsView(
  { id, method, template, deprecation }: Operation,
  hours: readonly { readonly atMs: number; readonly requests: number }[],
  basePath: string,
): object {
  return {
    operationId: id,
    method,
    path: basePath + template,
    deprecatedAt: isoOf(deprecation?.sinceMs),
    sunsetAt: isoOf(deprecation?.sunsetMs),
    successor: deprecation?.successor && basePath + deprecation.successor,
    requests: hours.reduce((sum, { requests }) => sum + requests, 0),
    lastHourAt: isoOf(Math.max(...hours.map(({ atMs }) => atMs))),
  };
}

/** The part of the usage record that holders of keys may read. */
export interface OwnUsage extends RowSources {
  readonly reader: Pick<UsageReader, 'minutes' | 'operationsOf'>;
  readonly turns: Pick<RecordTurns, 'readDays'>;
  /** The store's clock, epoch ms. */
  readonly nowMs: () => number;
}
