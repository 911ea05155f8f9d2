import type { Operation } from '../../shared/model.ts';
import type { OperationUsage, Period } from '../../usage/usage-reader.ts';
import type { KeySources } from '../keys/key-sources.ts';
import { keptPeriod } from './kept-period.ts';

const dayMs = 86_400_000;

/**
 * The usage of every operation in a period. Requests without an operation have the id ''. Undefined when the store gives no
 * answer.
 */
export async function operationsView(
  { settings, usage, nowMs }: KeySources,
  period: Period,
): Promise<object | undefined> {
  const used =
    usage === undefined ? [] : await usage.reader.operations(keptPeriod(period, usage.state(), nowMs()));
  if (used === undefined) return undefined;
  const byId = new Map(used.map((operation) => [operation.operationId, operation]));
  const { operations } = settings();
  const known = operations.map((operation) => ({
    ...describe(operation, nowMs()),
    ...(usage && figuresOf(byId.get(operation.id))),
  }));
  const ids = new Set(operations.map(({ id }) => id));
  // Removed from the document in the meantime, or never in it.
  const others = used
    .filter(({ operationId }) => !ids.has(operationId))
    .map((operation) => ({ operationId: operation.operationId, ...figuresOf(operation) }));
  return {
    fromAt: new Date(period.fromMs).toISOString(),
    toAt: new Date(period.toMs).toISOString(),
    operations: [...known, ...others],
  };
}

function describe(
  { id, method, template, stability, deprecation, upstream }: Operation,
  nowMs: number,
): object {
  return {
    operationId: id,
    method,
    path: template,
    upstream,
    ...(stability && { stability }),
    ...(deprecation && {
      deprecation: {
        sinceAt: new Date(deprecation.sinceMs).toISOString(),
        ...(deprecation.sunsetMs !== undefined && {
          sunsetAt: new Date(deprecation.sunsetMs).toISOString(),
          daysToSunset: Math.ceil((deprecation.sunsetMs - nowMs) / dayMs),
        }),
        ...(deprecation.successor !== undefined && { successor: deprecation.successor }),
        afterSunset: deprecation.afterSunset,
      },
    }),
  };
}

function figuresOf(used: OperationUsage | undefined): object {
  if (used === undefined) return { requests: 0, statuses: {} };
  const { requests, byStatus, own, upstream, lastMs } = used;
  return {
    requests,
    statuses: Object.fromEntries(byStatus),
    ownTime: own,
    upstreamTime: upstream,
    lastMs,
  };
}
