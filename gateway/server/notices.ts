import type { Logger } from 'pino';
import type { AskThread } from '../admin/api/thread-routes.ts';
import type { Callers } from '../admin/wires/operations.ts';
import type { Notice } from '../fleet/kinds/kinds.ts';
import type { OperationCallers } from '../fleet/kinds/operations.ts';
import type { KeyDirectory } from '../keys/directory/key-directory.ts';
import { createNotify } from '../notify/notify.ts';
import { expiringKeys } from '../notify/schedule/expiring-keys.ts';
import { dayMs } from '../notify/schedule/marks.ts';
import { changedPlans } from '../notify/schedule/plan-dates.ts';
import { createScanState } from '../notify/schedule/scan-state.ts';
import { createScans } from '../notify/schedule/scans.ts';
import { sunsetOperations } from '../notify/schedule/sunset-operations.ts';
import type { RedisConnection } from '../redis/redis-connection.ts';
import type { Limiter } from '../request/limit/limiter.ts';
import type { Settings } from '../shared/model.ts';
import type { Bounds } from '../shared/timeouts-and-sizes.ts';
import { createThresholdEvents } from './threshold-events.ts';

/** Reports notices to the receivers of the configuration, also notices that become due with the time. */
export function createNotices({
  settings,
  records,
  directory,
  processId,
  askThread,
  keptDays,
  limiter,
  log,
  bounds,
}: {
  readonly settings: () => Settings;
  readonly records: RedisConnection | undefined;
  readonly directory: KeyDirectory | undefined;
  readonly processId: string;
  readonly askThread: AskThread;
  readonly limiter: Pick<Limiter, 'confirmTold' | 'storeNowMs'>;
  /** The number of days in the usage record; undefined without a usage record. */
  readonly keptDays: number | undefined;
  readonly log: Logger;
  readonly bounds: Bounds;
}) {
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
        notices: (period) => expiringKeys({ settings: settings(), directory, bounds }, period),
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

  /**
   * Records a notice.
   *
   * @param seenBy the process that observed it, if another process records it
   */
  function record(notice: Notice, seenBy?: string): void {
    if (notice.kind === 'quota_threshold') void thresholds.record(notice, seenBy);
    else void notify.record(notice, seenBy);
  }

  async function planOf(keyId: string): Promise<string | undefined> {
    const configured = settings().keys.get(keyId)?.plan;
    if (configured !== undefined || directory === undefined) return configured;
    const read = await directory.readMany([keyId]);
    const key = read.kind === 'found' ? read.keys[0] : 'unknown';
    return key === 'unknown' ? directory.planOf(keyId) : key?.plan;
  }

  /** Reads the callers in the reading thread, because the usage record of many keys must be read. */
  async function readCallers(operationId: string): Promise<OperationCallers | undefined> {
    if (keptDays === undefined) return undefined;
    const days = Math.min(keptDays, callersDaysMax);
    const { listCallersWire } = await import('../admin/wires/operations.ts');
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
    record,
    queue: notify.queue,
    state: notify.state,
    start() {
      notify.start();
      scans.start();
    },
    /** Applies new settings. */
    replace() {
      notify.replace(settings().notify);
      scans.soon();
    },
    /** Reports plans whose limits have just changed at their date. */
    plansChanged: scans.soon,
    async close() {
      await scans.close();
      await notify.close();
    },
  };
}

/** The number of days whose calls an event about a sunset covers. */
const callersDaysMax = 7;
