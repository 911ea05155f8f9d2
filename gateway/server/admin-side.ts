import { hostname } from 'node:os';
import { createLateAdminApi } from '../admin/api/late-admin-api.ts';
import { loadInTurns, schemaParts } from '../admin/api/load-in-turns.ts';
import { outageOf } from '../admin/api/missing-data.ts';
import type { LentMembers } from '../admin/api/read-sources.ts';
import { tokenNameOf } from '../admin/api/tokens/authenticate.ts';
import { createAdminListener } from '../admin/listener/admin-listener.ts';
import { createAdminPaths } from '../admin/listener/admin-paths.ts';
import { createAdminPages } from '../admin/pages/admin-pages.ts';
import type { GatewayState, NotInForce, Phase } from '../admin/readiness.ts';
import { watchFaults } from '../admin/verdict/fault-watch.ts';
import { judgeGateway } from '../admin/verdict/judge-gateway.ts';
import { joinPlanFigures, partsOf, readKeyMembers } from '../capabilities/interfaces/join-parts.ts';
import { operatorsParts } from '../capabilities/lists/parts.ts';
import { createChanges, type EditedFile, type KeyChange, tokenEdit } from '../fleet/changes.ts';
import { createEvents } from '../fleet/events.ts';
import { createFailingUpstreams } from '../fleet/failing/failing-upstreams.ts';
import { createFlushFleet } from '../fleet/flush/flush-fleet.ts';
import { leakNotice } from '../fleet/kinds/key-notices.ts';
import { isHappening, type Notice } from '../fleet/kinds/kinds.ts';
import { createPresence } from '../fleet/presence.ts';
import { type ProcessState, upstreamsSeen } from '../fleet/process-state.ts';
import { createRecordedLeaks } from '../fleet/recorded-leaks.ts';
import type { Log } from '../observe/create-log.ts';
import type { ObservedState } from '../observe/metrics/metric-families.ts';
import { createMetrics } from '../observe/metrics/metrics.ts';
import type { StoreState } from '../request/limit/limiter.ts';
import { listenOn } from '../request/listen/listen-on.ts';
import type { AdminToken, Settings } from '../shared/model.ts';
import { isoOf } from '../shared/schema/dates-and-durations.ts';
import { withinDeadline } from '../shared/structures/within-deadline.ts';
import type { Bounds } from '../shared/timeouts-and-sizes.ts';
import { createFailedHandshakes } from '../shared/tls/failed-handshakes.ts';
import { watchDataMark } from './data-mark.ts';
import { watchCertificates } from './expiring-certificates.ts';
import { followPlanChanges } from './plan-changes.ts';
import { createReadingThread, type StartReadingWorker } from './reading/reading-thread.ts';
import { joinUpstreams, type Served, type ServingProcess } from './served.ts';
import type { Stores } from './stores.ts';

interface AdminSideOptions {
  readonly settings: Settings;
  /** The name of this process in the list of processes and in the records of changes and events. */
  readonly processId: string;
  readonly stores: Stores;
  readonly phase: () => Phase;
  /** The figures of the processes that serve requests. */
  readonly served: Served;
  readonly log: Pick<Log, 'logger'>;
  readonly bounds: Bounds;
  /** The gateway's clock, epoch ms. */
  readonly nowMs: () => number;
  readonly startReadingWorker?: StartReadingWorker | undefined;
}

/** Creates the part of the gateway that serves operators: the admin listener, and the records that all gateways of a fleet share. */
export function createAdminSide({
  settings: firstSettings,
  processId,
  stores: { limiter, directory, blocked, capabilities, usage, records },
  phase,
  served,
  log: { logger },
  bounds,
  nowMs,
  startReadingWorker,
}: AdminSideOptions) {
  const startedAt = isoOf(nowMs());
  const parts = partsOf(capabilities);
  const planChanges = followPlanChanges({
    limiter,
    parts,
    log: logger,
    bounds,
    onChange(next) {
      settings = next;
      tellSettings();
    },
  });
  let settings = planChanges.take(firstSettings);
  let loadedAtMs = nowMs();
  let notInForce: NotInForce = {};
  let recording = Promise.resolve();
  const recordedLeaks = createRecordedLeaks(bounds);
  let leakTimer: NodeJS.Timeout | undefined;

  const events = createEvents({ records, processId, nowMs: limiter.storeNowMs, bounds });
  const changes = createChanges({ records, processId, nowMs, bounds });
  const presence = createPresence({
    records,
    processId,
    own: () => served.processes().map(describeProcess),
    sendCounts: served.sendCounts,
    bounds,
  });
  const dataMark = watchDataMark({ records, onLost: recordNotice, nowMs, bounds });
  const failingUpstreams = createFailingUpstreams({
    served: served.processes,
    upstreams: () => settings.upstreams,
    presence,
    events,
    onEvent: recordNotice,
    reportBug,
    nowMs: limiter.storeNowMs,
    bounds,
  });
  const { flushFleet, requestFlush } = createFlushFleet({ records, presence, bounds });
  const certificates = watchCertificates({
    settings,
    log: logger,
    onEvent: recordNotice,
    nowMs,
    bounds,
  });

  const leakOf = (digest: string) => blocked.find(digest)?.leak;
  const ofOperators = operatorsParts.map((open) =>
    open(capabilities, {
      settings: () => settings,
      keys: { settings: () => settings, directory, leakOf, nowMs: limiter.storeNowMs, bounds },
      usage,
      readStoreNowMs: limiter.readStoreNowMs,
      limiter,
      records,
      processId,
      planInDirectory: (keyId) => directory?.planOf(keyId),
      askThread: (request) => reading.ask(request),
      flushFleet,
      recordKeyChange,
      recordChange: changes.record,
      recordNotice,
      readMetrics: () => metrics.readData(),
      log: logger,
    }),
  );
  const metrics = createMetrics({
    observe,
    others: served.workers?.metrics,
    families: ofOperators.flatMap(({ families }) => families ?? []),
    bounds,
  });
  const planFigures = () => joinPlanFigures(parts);
  const readMembers = (keyIds: readonly string[]) => readKeyMembers(parts, keyIds);
  const faults = watchFaults(() => judgeGateway(currentState()), {
    nowMs,
    bounds,
  });

  const lentByParts: LentMembers = Object.assign({}, ...ofOperators.map((part) => part.lent));
  const reading = createReadingThread({
    settings: () => settings,
    lent: {
      ...lentByParts,
      unsent: (records) => usage?.recorder.unsent(records) ?? [],
      lastSeen: () => usage?.recorder.lastSeen() ?? new Map(),
      readEvents: (page) => events.read(page),
      readChanges: (page) => changes.read(page),
      readProcesses: () => presence.read(),
      outage: async () => outageOf(limiter.state(), startedAt),
      ...served.memory,
      planFigures,
      readMembers,
    },
    data: {
      keptDays: usage?.state().keptDays,
      hasDirectory: directory !== undefined,
    },
    blocked,
    nowMs: limiter.storeNowMs,
    log: logger,
    bounds,
    startWorker: startReadingWorker,
  });
  const failedHandshakes = createFailedHandshakes(logger, bounds);
  const admin = createAdminListener({
    respond: createAdminPaths({
      currentState,
      metrics,
      admin: () => settings.admin,
      api: createLateAdminApi({
        sources: {
          startedAt,
          state: currentState,
          faults: faults.read,
          presence,
          flushFleet,
          changes,
          events,
          redis: records,
          lent: lentByParts,
          keyChanges: {
            limiter,
            record: recordKeyChange,
            directory,
          },
          blocked,
          ofCapabilities: async () =>
            (await Promise.all(ofOperators.map(({ routes }) => routes?.() ?? []))).flat(),
          keys: {
            settings: () => settings,
            async readStatus(keys) {
              const read = await limiter.read(keys);
              return read.kind === 'read' ? read.keys : undefined;
            },
            readMembers,
            directory,
            leakOf,
            planFigures,
            usage,
            nowMs: limiter.storeNowMs,
            bounds,
          },
        },
        askThread: reading.ask,
        requestFlush,
        admin: () => settings.admin,
        log: logger,
        nowMs,
        bounds,
      }),
      pages: createAdminPages(),
    }),
    tokenOf: (authorization) => tokenNameOf(authorization, settings.admin.tokens),
    reportBug,
    onFailedHandshake: (reason) => failedHandshakes.count('admin', reason),
    bounds,
    ...(settings.admin.tls && { certificate: settings.admin.tls }),
  });

  function observe(): ObservedState {
    const processes = served.processes();
    const counted = served.counted();
    const { config, store, upstreams, usage } = currentState();
    const { bans, bannedKeys } = limiter.counts();
    return {
      config,
      ...counted,
      ...(directory && {
        directory: { lookUps: counted.lookUps, heldKeys: sumOf(processes, ({ heldKeys }) => heldKeys) },
      }),
      usage,
      storeAvailable: store.kind === 'memory' || store.available,
      storeServersAway: serversAway(store),
      bans,
      bannedKeys,
      workers: served.workers?.count(),
      certificates: { ...certificates.current() },
      inFlight: sumOf(processes, ({ inFlight }) => inFlight),
      connections: sumOf(processes, ({ connections }) => connections),
      upstreams,
      settings,
      nowMs: nowMs(),
    };
  }

  function currentState(): GatewayState & { readonly store: StoreState } & Pick<ServingProcess, 'upstreams'> {
    const workers = served.workers?.count();
    return {
      phase: phase(),
      workers,
      environment: settings.environment,
      config: {
        version: settings.version,
        loadedAt: new Date(loadedAtMs).toISOString(),
        ...notInForce,
      },
      store: limiter.state(),
      hasDirectory: directory !== undefined,
      dataLostAt: isoOf(dataMark.lostAtMs()),
      leakedSecrets: leakedInConfiguration(),
      parts: ofOperators.flatMap((part) => part.state?.() ?? []),
      certificates: certificates.state(),
      unreadForwardedFor: served.processes().find((one) => one.unreadForwardedFor)?.unreadForwardedFor,
      usage: usage && { ...usage.state(), lostRequests: served.counted().lostRequests },
      upstreams: joinUpstreams(served.processes().map(({ upstreams }) => upstreams)),
    };
  }

  function describeProcess({
    upstreams,
    heldKeys: _,
    unreadForwardedFor: __,
    ...process
  }: ServingProcess): ProcessState {
    return {
      ...process,
      host: hostname(),
      phase: phase(),
      upstreams: upstreamsSeen(upstreams, bounds.presenceTargetsMax),
      faults: faults.read(),
      failingUpstreams: failingUpstreams.read(),
    };
  }

  /** The number of leaked secrets that the configuration still has. */
  function leakedInConfiguration(): number {
    return [...blocked.all()].filter(({ digest }) => isInConfiguration(digest)).length;
  }

  function isInConfiguration(digest: string): boolean {
    return settings.keys.find(digest) !== undefined;
  }

  function renewLeaks(): void {
    blocked.renew().catch(reportBug);
  }

  /** @param seenBy the process that observed it, if another process records it */
  function recordNotice(notice: Notice, seenBy?: string): void {
    if (isHappening(notice)) events.record(notice, seenBy);
    for (const part of ofOperators) part.onNotice?.(notice, seenBy);
  }

  function tellSettings(): void {
    for (const part of ofOperators) part.settingsChanged?.();
  }

  function recordKeyChange({ plan, ...change }: KeyChange): void {
    if (recordedLeaks.isRepeated(change)) return;
    const { key, by, ranBy, action } = change;
    changes.record(change);
    recordNotice({ kind: 'key_changed', plan, ...change });
    const leaked = leakNotice(change, settings.keys.get(key ?? '')?.plan ?? directory?.planOf(key ?? ''));
    if (leaked !== undefined) recordNotice(leaked);
    logger.info({ keyId: key, by, ranBy, action }, 'a key was changed');
  }

  async function recordReload(
    before: Settings,
    after: Settings,
    files: readonly EditedFile[],
  ): Promise<void> {
    const loadDescribing = () => import('../admin/settings/describe-edit.ts');
    const { describeEdit } = await loadInTurns(schemaParts, loadDescribing);
    const { planEdits, ...edit } = await describeEdit(before, after, bounds);
    const versions = { before: before.version, after: after.version };
    changes.record({
      action: 'reload',
      by: 'file',
      ...membersOf(files),
      ...versions,
      ...edit,
    });
    recordTokenChange(before.admin.tokens, after.admin.tokens);
    recordNotice({ kind: 'reload', ...versions, edits: edit.edits });
    const version = `${before.version} ${after.version}`;
    for (const one of planEdits) recordNotice({ kind: 'plan_changed', cause: 'reload', ...one, version });
  }

  function reportBug(bug: unknown, requestId?: string): void {
    logger.error({ err: bug, requestId }, 'a bug in the admin listener');
  }

  function recordTokenChange(before: readonly AdminToken[], after: readonly AdminToken[]): void {
    const edit = tokenEdit(before, after);
    if (edit === undefined) return;
    changes.record({ action: 'token', by: 'file', ...edit });
    logger.info({ by: 'file', action: 'token' }, 'the tokens of the admin API were changed');
  }

  return {
    /** @throws when the address cannot be listened on */
    listen: () => listenOn(admin.server, settings.admin),
    /** Starts to publish this gateway in the list of processes. */
    start() {
      presence.start();
      failingUpstreams.start();
      for (const part of ofOperators) part.start?.();
      certificates.start();
      leakTimer = setInterval(renewLeaks, bounds.leakRenewalMs).unref();
    },
    /** @param now the part of the configuration on disk that is not in these settings @param files the edited files */
    reload(next: Settings, now: NotInForce = {}, files: readonly EditedFile[] = []) {
      const before = settings;
      settings = planChanges.take(next);
      loadedAtMs = nowMs();
      notInForce = now;
      certificates.replace(next);
      renewLeaks();
      for (const part of parts) part.reloaded?.();
      tellSettings();
      if (next.admin.tls) admin.setCertificate(next.admin.tls);
      // Reloads are compared one at a time, because the comparison of many keys takes a while.
      const after = settings;
      recording = recording.then(() => recordReload(before, after, files)).catch(reportBug);
    },
    /** Reports in `/readyz` that the configuration on disk is not valid. @param version digest of the files on disk */
    reportFailedReload(
      error: string,
      version?: string,
      kept?: NotInForce['kept'],
      files: readonly EditedFile[] = [],
    ) {
      const { waitsForRestart } = notInForce;
      notInForce = { lastError: error, kept, waitsForRestart };
      const before = settings.version;
      const after = version === undefined ? {} : { after: version };
      // The valid files of the same edit were loaded first, and a receiver must get the events in this order.
      recording = recording
        .then(() => {
          changes.record({
            action: 'reload_failed',
            by: 'file',
            ...membersOf(files),
            before,
            ...after,
            error,
          });
          recordNotice({ kind: 'reload_failed', before, after: version, error });
        })
        .catch(reportBug);
    },
    recordNotice,
    /** Records a change that the holder of a key or a report of a leaked secret has made. */
    recordKeyChange,
    /** Sends the events and changes that are not stored yet, for at most `bounds.drainEventsMs`. */
    async flush() {
      faults.close();
      failingUpstreams.close();
      dataMark.close();
      for (const part of ofOperators) part.close?.();
      await withinDeadline(sendRest(), bounds.drainEventsMs, () => undefined);
    },
    /** Closes the listener. */
    close() {
      planChanges.close();
      certificates.close();
      clearInterval(leakTimer);
      reading.close();
      admin.close();
    },
  };

  async function sendRest(): Promise<void> {
    await recording;
    await Promise.all([
      presence.close(),
      changes.close(),
      events.close(),
      ...ofOperators.map((part) => part.flush?.()),
    ]);
  }
}

function membersOf(files: readonly EditedFile[]) {
  return files.length === 0 ? {} : { files: files.map(({ name }) => name), editedFiles: files };
}

function serversAway(store: StoreState): number {
  if (store.kind === 'memory' || store.available) return 0;
  return store.servers?.filter(({ available }) => !available).length ?? 1;
}

function sumOf(processes: readonly ServingProcess[], figureOf: (process: ServingProcess) => number): number {
  return processes.reduce((sum, process) => sum + figureOf(process), 0);
}
