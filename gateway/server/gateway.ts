import { randomBytes } from 'node:crypto';
import type { AddressInfo } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import type { NotInForce, Phase } from '../admin/readiness.ts';
import type { EditedFile } from '../fleet/changes.ts';
import type { Log } from '../observe/create-log.ts';
import type { Settings } from '../shared/model.ts';
import { type Bounds, defaultBounds } from '../shared/timeouts-and-sizes.ts';
import { createAdminSide } from './admin-side.ts';
import { ownMemoryOf } from './own-memory.ts';
import type { StartReadingWorker } from './reading/reading-thread.ts';
import { createRequestSide } from './request-side.ts';
import { openStores } from './stores.ts';

export interface GatewayOptions {
  readonly settings: Settings;
  readonly log: Pick<Log, 'logger' | 'access'>;
  /** Timeouts and sizes. Tests use other values than the defaults. */
  readonly bounds?: Bounds;
  /** The gateway's clock, epoch ms. Tests pass another clock, for example a clock that shows a time after a sunset. */
  readonly nowMs?: () => number;
  /** The process id for the list of processes. */
  readonly pid?: number;
  /**
   * Starts the worker that answers operators' queries about many keys. Default: a thread. Tests run the worker in their own thread, because
   * threads start slowly.
   */
  readonly startReadingWorker?: StartReadingWorker;
}

export interface Gateway {
  /** @throws when an address cannot be listened on */
  start(): Promise<{ readonly listen: AddressInfo; readonly admin: AddressInfo }>;
  /**
   * Puts new settings into effect. A request in flight keeps the snapshot with which it began.
   *
   * @param notInForce the part of the configuration on disk that is not in these settings; for `/readyz`
   */
  reload(settings: Settings, notInForce?: NotInForce, files?: readonly EditedFile[]): void;
  /** Reports in `/readyz` that the configuration on disk is not valid. @param version digest of the files on disk */
  reportFailedReload(
    error: string,
    version?: string,
    kept?: NotInForce['kept'],
    files?: readonly EditedFile[],
  ): void;
  /**
   * Ends the gateway gracefully. `/readyz` answers 503 for `graceMs`. After that, WebSockets are closed, no connection is accepted, and
   * requests in flight finish with `Connection: close`. After `bounds.drainDeadlineMs` the remaining connections are closed.
   */
  drain(options: { readonly graceMs: number }): Promise<void>;
}

/** Creates a gateway in one process, which serves requests and operators. */
export function createGateway({
  settings: firstSettings,
  log,
  bounds = defaultBounds,
  nowMs = Date.now,
  pid = 0,
  startReadingWorker,
}: GatewayOptions): Gateway {
  let settings = firstSettings;
  let phase: Phase = 'starting';
  const processId = randomBytes(6).toString('hex');
  const stores = openStores({
    settings: () => settings,
    log: log.logger,
    onEvent: (notice) => admin.recordNotice(notice),
    bounds,
    nowMs,
  });
  const requests = createRequestSide({
    settings,
    processId,
    stores,
    log,
    onEvent: (notice) => admin.recordNotice(notice),
    onKeyChange: (change) => admin.recordKeyChange(change),
    bounds,
    nowMs,
    pid,
  });
  const admin = createAdminSide({
    settings,
    processId,
    stores,
    phase: () => phase,
    served: {
      processes: () => [requests.process()],
      counted: requests.counted,
      sendCounts: (flush) => void stores.sendCounts(flush),
      memory: ownMemoryOf(stores),
    },
    log,
    bounds,
    nowMs,
    startReadingWorker,
  });

  return {
    async start() {
      const adminAddress = await admin.listen();
      const listenAddress = await requests.listen(settings.listen);
      phase = 'serving';
      admin.start();
      return { listen: listenAddress, admin: adminAddress };
    },
    reload(next, notInForce, files) {
      settings = next;
      requests.reload(next);
      admin.reload(next, notInForce, files);
    },
    reportFailedReload: admin.reportFailedReload,
    async drain({ graceMs }) {
      phase = 'draining';
      // Most counts are sent during the drain, because `usageCloseTimeoutMs` is short for the counts of many quiet keys.
      void stores.usage?.recorder.send();
      await sleep(graceMs);
      await requests.drain();
      await Promise.all([stores.flush(), admin.flush()]);
      stores.close();
      admin.close();
    },
  };
}
