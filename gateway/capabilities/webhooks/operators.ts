import type { Callers } from '../../admin/wires/operations.ts';
import type { OperationCallers } from '../../fleet/kinds/operations.ts';
import type { PartState } from '../../fleet/process-state.ts';
import { planNameAt } from '../../keys/plans/compile-key.ts';
import type { RedisConnection } from '../../redis/redis-connection.ts';
import { isoOf } from '../../shared/schema/dates-and-durations.ts';
import { dayMs } from '../../shared/words/figures.js';
import type { OperatorsPart, OperatorsSources } from '../interfaces/operators.ts';
import type { DeliverySources } from './api/delivery-routes.ts';
import { createThresholdEvents } from './events/threshold-events.ts';
import { createNotify, type NotifyState } from './notify.ts';
import { notifyFamilies } from './notify-families.ts';
import { emptyQueue } from './queue/delivery-queue.ts';
import { expiringKeys } from './schedule/expiring-keys.ts';
import { changedPlans } from './schedule/plan-dates.ts';
import { createScanState } from './schedule/scan-state.ts';
import { createScans } from './schedule/scans.ts';
import { sunsetOperations } from './schedule/sunset-operations.ts';

/**
 * Opens the webhooks of a gateway. Without Redis, there are no receivers and no events. If an edit adds `redis` and `notify` to a running
 * gateway, the receivers get events from the next start on.
 */
export function webhooksOperators({ records, ...sources }: OperatorsSources): OperatorsPart {
  if (records !== undefined) return openWebhooks({ records, ...sources });
  return {
    ...partOf(emptyQueue, sources),
    families: notifyFamilies(() => undefined),
  };
}

/** What shows the queue: the routes, and the figures for the reading thread. */
function partOf(
  queue: DeliverySources['queue'],
  { settings, log }: Pick<OperatorsSources, 'settings' | 'log'>,
) {
  return {
    async routes() {
      const { createDeliveryRoutes } = await import('./api/delivery-routes.ts');
      const logResend = (resend: object) => log.info(resend, 'a webhook event is sent again');
      return createDeliveryRoutes({ queue, logResend }, settings);
    },
    lent: {
      countDeliveries: async () => ({ read: await queue.counts(), last: queue.lastCounts() }),
    },
  };
}

/** Sends the events of notices to the receivers of the configuration, also events that become due with the time. */
function openWebhooks({
  settings,
  keys: { directory, leakOf, bounds },
  usage,
  limiter,
  records,
  processId,
  planInDirectory,
  askThread,
  log,
}: OperatorsSources & { readonly records: RedisConnection }): OperatorsPart {
  const nowMs = limiter.storeNowMs;
  const notify = createNotify({
    receivers: settings().notify,
    redis: records,
    processId,
    planOf,
    nowMs,
    log,
    bounds,
  });
  const thresholds = createThresholdEvents({ notify, limiter, bounds });
  const scans = createScans({
    scans: [
      {
        type: 'plan.changed',
        isFirstLate: false,
        notices: (period) => changedPlans(settings(), period),
      },
      {
        type: 'operation.sunset',
        isFirstLate: true,
        notices: (period) => sunsetOperations(settings(), readCallers, period),
      },
      {
        type: 'key.expiring',
        isFirstLate: true,
        notices: (period) => expiringKeys({ settings: settings(), directory, leakOf, bounds }, period),
      },
    ],
    isWanted: (type) => settings().notify.some(({ events }) => events.includes(type)),
    state: createScanState({ redis: records, processId, bounds }),
    record: (notice) => notify.record(notice),
    waiting: async () => (await notify.queue.counts())?.waiting,
    nowMs,
    log,
    bounds,
  });

  async function planOf(keyId: string): Promise<string | undefined> {
    const configured = settings().keys.get(keyId)?.plan;
    if (configured !== undefined || directory === undefined) return configured;
    const read = await directory.readMany([keyId]);
    const key = read.kind === 'found' ? read.keys[0] : 'unknown';
    return key === 'unknown' ? planInDirectory(keyId) : key && planNameAt(key, nowMs());
  }

  /** Reads the callers in the reading thread, because the usage record of many keys must be read. */
  async function readCallers(operationId: string): Promise<OperationCallers | undefined> {
    if (usage === undefined) return undefined;
    const days = Math.min(usage.state().keptDays, callersDaysMax);
    const { listCallersWire } = await import('../../admin/wires/operations.ts');
    const response = await askThread({
      route: `GET ${listCallersWire.path}`,
      isFixed: undefined,
      sent: undefined,
      params: { operationId },
      query: { from: nowMs() - days * dayMs, limit: bounds.webhookListMax },
      token: { name: 'notify', sha256: '', may: 'read' },
    });
    if (response.status !== 200) return undefined;
    const { callers, more = 0 } = JSON.parse(response.body.toString()) as Callers;
    return { days, callers: callers.map(({ id, requests }) => ({ keyId: id, requests })), more };
  }

  return {
    ...partOf(notify.queue, { settings, log }),
    families: notifyFamilies(notify.state),
    state: () => stateOf(notify.state()),
    start() {
      notify.start();
      scans.start();
    },
    settingsChanged() {
      notify.replace(settings().notify);
      scans.soon();
    },
    onNotice(notice, seenBy) {
      if (notice.kind === 'quota_threshold') void thresholds.record(notice, seenBy);
      else void notify.record(notice, seenBy);
    },
    async flush() {
      await scans.close();
      await notify.close();
    },
  };
}

/** The faults of receivers. Webhooks do not affect the readiness of a gateway. */
export function stateOf(notify: NotifyState | undefined): PartState {
  const failing = (notify?.failing ?? []).map(({ origin, sinceMs, error }) => ({
    severity: 'warning' as const,
    code: 'webhooks_fail',
    text: `The receiver of webhooks at ${origin} gets nothing: ${error}.`,
    sinceAt: isoOf(sinceMs),
  }));
  const dropped = {
    severity: 'warning' as const,
    code: 'webhooks_dropped',
    text: 'Events for webhooks were dropped, because too many waited for their delivery.',
    sinceAt: isoOf(notify?.droppedSinceMs),
  };
  return {
    members: {},
    reasons: [],
    faults: notify?.droppedSinceMs === undefined ? failing : [...failing, dropped],
  };
}

/** The number of days whose calls an event about a sunset covers. */
const callersDaysMax = 7;
