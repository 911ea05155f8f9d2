import { randomBytes } from 'node:crypto';
import type { IncomingMessage } from 'node:http';
import type { AddressInfo } from 'node:net';
import { hostname } from 'node:os';
import { setTimeout as sleep } from 'node:timers/promises';
import { createAdminListener } from './admin/admin-listener.ts';
import { createAdminPaths } from './admin/admin-paths.ts';
import { createAdminApi } from './admin/api/admin-api.ts';
import { createRoutes } from './admin/api/routes.ts';
import { createAdminPages } from './admin/pages/admin-pages.ts';
import type { Phase } from './admin/readiness.ts';
import { createKeyDirectory } from './directory/key-directory.ts';
import { createEventLoopBatch } from './event-loop-batch.ts';
import { type Exchange, openExchange } from './exchange.ts';
import { createChanges, type KeyChange } from './fleet/changes.ts';
import { createEvents } from './fleet/events.ts';
import { planEdits } from './fleet/plan-edits.ts';
import { createPresence } from './fleet/presence.ts';
import { type ProcessState, upstreamsSeen } from './fleet/process-state.ts';
import { tokenEdit } from './fleet/token-edit.ts';
import { createForwarder } from './forward/forwarder.ts';
import { calendarWindowsMs, type WindowsMs } from './limit/calendar-windows.ts';
import { createLimiter, type StoreState } from './limit/limiter.ts';
import { listenOn } from './listen/listen-on.ts';
import { createListener } from './listen/listener.ts';
import { matchOperation } from './match/operation-table.ts';
import type { AdminToken, Settings } from './model.ts';
import { accessLine } from './observe/access-line.ts';
import type { Log } from './observe/create-log.ts';
import { createMetricsText, type ObservedState } from './observe/metrics/metrics-text.ts';
import { createRecentFigures } from './observe/metrics/recent-figures.ts';
import { createRequestMetrics } from './observe/metrics/request-metrics.ts';
import { createReferenceAssets } from './pages/api-reference.ts';
import { createUnreadPages } from './pages/unread-pages.ts';
import { openRedis } from './redis/open-redis.ts';
import { type Stations, serveExchange } from './request-path.ts';
import { createSnapshot } from './snapshot.ts';
import { type Bounds, defaultBounds } from './timeouts-and-sizes.ts';
import { type Certificates, certificatesOf, expiryNotice } from './tls/certificate-expiry.ts';
import { createFailedHandshakes } from './tls/failed-handshakes.ts';
import type { EndedExchange } from './usage/recorder.ts';
import { createUsage } from './usage/usage.ts';

export interface GatewayOptions {
  readonly settings: Settings;
  readonly log: Pick<Log, 'logger' | 'access'>;
  /** Timeouts and sizes; tests pass their own. */
  readonly bounds?: Bounds;
  /** The gateway's clock, epoch ms; injected so that tests can stand after a sunset. */
  readonly nowMs?: () => number;
  /** Of this process; for the list of processes. */
  readonly pid?: number;
  /** Lengths of the plan's windows; tests use short ones. */
  readonly windowsMs?: Partial<WindowsMs>;
}

export interface Gateway {
  /** @throws when an address cannot be listened on */
  start(): Promise<{ readonly listen: AddressInfo; readonly admin: AddressInfo }>;
  /** Puts new settings in force; requests in flight finish on the snapshot they began with. */
  reload(settings: Settings): void;
  /** Reports in `/readyz` that the last valid configuration stays in force. @param version of the one that is not valid */
  reportFailedReload(error: string, version?: string): void;
  /**
   * The graceful end. `/readyz` says 503 for `graceMs`; then tunnels are closed, no connection is accepted any more, and
   * requests in flight finish with `Connection: close`. After `bounds.drainDeadlineMs` the rest is cut.
   */
  drain(options: { readonly graceMs: number }): Promise<void>;
}

/** Creates the stations of the request path and connects them. */
export function createGateway({
  settings,
  log: { logger, access },
  bounds = defaultBounds,
  nowMs = Date.now,
  pid = 0,
  windowsMs,
}: GatewayOptions): Gateway {
  const referenceAssets = createReferenceAssets();
  // A connection of its own: a look-up must not wait behind a page of the usage record.
  const directoryRecords =
    settings.directory && settings.redis ? openRedis(settings.redis, bounds) : undefined;
  const directory = settings.directory
    ? createKeyDirectory({
        redis: directoryRecords,
        nowMs,
        storeNowMs: () => limiter.nowMs(),
        log: logger,
        bounds,
      })
    : undefined;
  let snapshot = createSnapshot(settings, referenceAssets, directory);
  let loadedAtMs = nowMs();
  let lastReloadError: string | undefined;
  let phase: Phase = 'starting';
  /** Those that the listeners present. Whether they speak TLS at all is decided at the start. */
  let certificates: Certificates = certificatesOf(settings);

  const records = settings.redis && openRedis(settings.redis, bounds);
  const processId = randomBytes(6).toString('hex');
  const events = createEvents({ records, processId, nowMs: () => limiter.nowMs(), bounds });
  const limiter = createLimiter({
    log: logger,
    bounds,
    nowMs,
    planOf: (keyId) => snapshot.settings.keys.get(keyId)?.plan ?? directory?.planOf(keyId),
    onEvent: (event) =>
      events.record(event.kind === 'ban' ? { ...event, policy: snapshot.settings.bans } : event),
    ...(settings.redis && { redis: settings.redis }),
    ...(windowsMs && { windowsMs }),
  });
  const usage =
    settings.usage.keepDays === 0
      ? undefined
      : createUsage({
          ...(records && { redis: records }),
          keepDays: settings.usage.keepDays,
          minuteMs: windowsMs?.minute ?? calendarWindowsMs.minute,
          nowMs: limiter.nowMs,
          onPause: reportPause,
          bounds,
        });
  const metrics = createRequestMetrics();
  const recentFigures = createRecentFigures(metrics, bounds);
  const startedAt = new Date(nowMs()).toISOString();
  const presence = createPresence({ records, own: describeProcess, bounds });
  const changes = createChanges({ records, processId, nowMs, bounds });
  const atTurnEnd = createEventLoopBatch();
  const forwarder = createForwarder({
    upstreams: settings.upstreams,
    log: logger,
    onEvent: events.record,
    bounds,
    atTurnEnd,
    nowMs,
  });
  const stations: Stations = {
    limiter,
    forwarder,
    atTurnEnd,
    unreadPages: createUnreadPages(bounds),
    ...(directory && { directory }),
    ...(usage && { usage: usage.recorder }),
    bounds,
    nowMs,
    records: [
      (exchange) => access(accessLine(exchange)),
      metrics.end,
      (exchange) => usage?.recorder.ended(endedExchange(exchange, limiter.nowMs)),
    ],
    reportBug: (bug, exchange) => reportBug(bug, exchange.id),
  };

  function reportBug(bug: unknown, requestId?: string): void {
    logger.error({ err: bug, requestId }, 'a bug in the request path');
  }

  function reportPause(reason: string | undefined): void {
    if (reason === undefined) {
      logger.info('the usage record goes on');
      events.record({ kind: 'recording_resumed' });
    } else {
      logger.warn({ reason }, 'the usage record pauses');
      events.record({ kind: 'recording_paused', reason });
    }
  }

  const failedHandshakes = createFailedHandshakes(logger, bounds);
  const listener = createListener({
    handlers: {
      onArrival(arrival) {
        metrics.begin();
        void serveExchange(openExchange(arrival, snapshot), stations);
      },
      wantsUpgrade: (req) => isWebSocketOperation(req),
      reportBug,
      onFailedHandshake: (reason) => failedHandshakes.count('listen', reason),
    },
    bounds,
    ...(settings.listen.tls && { certificate: settings.listen.tls }),
  });

  const adminSettings = () => snapshot.settings.admin;
  const admin = createAdminListener({
    respond: createAdminPaths({
      currentState,
      metrics: createMetricsText(metrics, observe),
      admin: adminSettings,
      api: createAdminApi({
        routes: createRoutes({
          settings: () => snapshot.settings,
          state: currentState,
          presence,
          changes,
          events,
          keyChanges: {
            limiter: { ...limiter, liftBan: (keyId) => limiter.liftBan(keyId, snapshot.settings.bans) },
            record: recordKeyChange,
          },
          keys: {
            settings: () => snapshot.settings,
            async readStatus(keys) {
              const read = await limiter.read(keys);
              return read.kind === 'read' ? read.keys : undefined;
            },
            ...(directory && { directory }),
            ...(usage && { usage }),
            nowMs: limiter.nowMs,
            bounds,
          },
          bounds,
        }),
        admin: adminSettings,
        log: logger,
        nowMs,
        bounds,
      }),
      pages: createAdminPages(),
    }),
    reportBug,
    onFailedHandshake: (reason) => failedHandshakes.count('admin', reason),
    bounds,
    ...(settings.admin.tls && { certificate: settings.admin.tls }),
  });

  function isWebSocketOperation(req: IncomingMessage): boolean {
    if (req.headers.upgrade?.toLowerCase() !== 'websocket') return false;
    const path = (req.url ?? '').split('?', 1)[0] ?? '';
    const match = matchOperation(snapshot.operations, req.method ?? '', path);
    return match.kind === 'matched' && match.offered.operation.upgrade === 'websocket';
  }

  function observe(): ObservedState {
    const { calls, decidedLocally, bans, bannedKeys } = limiter.counts();
    const { config, store, upstreams, ...state } = currentState();
    return {
      config,
      ...(directory && { directory: directory.counts() }),
      ...(state.usage && { usage: state.usage }),
      storeAvailable: store.kind === 'memory' || store.available,
      storeServersAway: serversAway(store),
      storeCalls: calls,
      decidedLocally,
      bans,
      bannedKeys,
      certificates: { ...certificates },
      connections: listener.connections(),
      upstreams,
      settings: snapshot.settings,
      nowMs: nowMs(),
    };
  }

  function currentState() {
    return {
      phase,
      environment: snapshot.settings.environment,
      config: {
        version: snapshot.settings.version,
        loadedAt: new Date(loadedAtMs).toISOString(),
        ...(lastReloadError !== undefined && { lastError: lastReloadError }),
      },
      store: limiter.state(),
      certificates: Object.fromEntries(
        Object.entries(certificates).map(([name, certificate]) => {
          const notice = expiryNotice(name, certificate, nowMs());
          const notAfter = new Date(certificate.notAfterMs).toISOString();
          return [name, { notAfter, ...(notice !== undefined && { notice }) }];
        }),
      ),
      ...(usage && { usage: usage.state() }),
      upstreams: forwarder.state(),
    };
  }

  function describeProcess(): ProcessState {
    const { store, config, upstreams } = currentState();
    return {
      id: processId,
      host: hostname(),
      pid,
      startedAt,
      phase,
      configVersion: config.version,
      ...recentFigures.read(),
      inFlight: metrics.inFlight(),
      connections: listener.connections(),
      store: { kind: store.kind, available: store.kind === 'memory' || store.available },
      upstreams: upstreamsSeen(upstreams, bounds.presenceTargetsMax),
    };
  }

  function recordKeyChange(change: KeyChange): void {
    const { key, by, action } = change;
    changes.record(change);
    events.record({ kind: 'key_changed', ...change });
    logger.info({ ...(key !== undefined && { keyId: key }), by, action }, 'a key was changed');
  }

  function recordTokenChange(before: readonly AdminToken[], after: readonly AdminToken[]): void {
    const edit = tokenEdit(before, after);
    if (edit === undefined) return;
    changes.record({ action: 'token', by: 'file', ...edit });
    logger.info({ by: 'file', action: 'token' }, 'the tokens of the admin API were changed');
  }

  function setCertificates(next: Certificates): void {
    certificates = {
      ...(certificates.listen && { listen: next.listen ?? certificates.listen }),
      ...(certificates.admin && { admin: next.admin ?? certificates.admin }),
    };
    if (certificates.listen) listener.setCertificate(certificates.listen);
    if (certificates.admin) admin.setCertificate(certificates.admin);
    reportExpiry();
  }

  const reportedNotices = new Map<string, string>();
  let noticeTimer: NodeJS.Timeout | undefined;

  function logExpiry(): void {
    for (const { notice } of reportExpiry()) logger.warn(notice);
  }

  /** At the start and at a reload the log has the notices among the warnings of the configuration. */
  function reportExpiry() {
    const expiring = Object.entries(certificates).flatMap(([listener, certificate]) => {
      const notice = expiryNotice(listener, certificate, nowMs());
      return notice === undefined ? [] : [{ listener, notice, notAfterMs: certificate.notAfterMs }];
    });
    for (const one of expiring) {
      if (reportedNotices.get(one.listener) !== one.notice)
        events.record({ kind: 'certificate_expiring', ...one });
      reportedNotices.set(one.listener, one.notice);
    }
    return expiring;
  }

  return {
    async start() {
      const adminAddress = await listenOn(admin.server, settings.admin);
      const listenAddress = await listener.listen(settings.listen);
      phase = 'serving';
      presence.start();
      reportExpiry();
      noticeTimer = setInterval(logExpiry, bounds.certificateNoticeIntervalMs).unref();
      return { listen: listenAddress, admin: adminAddress };
    },
    reload(next) {
      const { version: before, plans, admin } = snapshot.settings;
      snapshot = createSnapshot(next, referenceAssets, directory);
      loadedAtMs = nowMs();
      lastReloadError = undefined;
      forwarder.setUpstreams(next.upstreams);
      limiter.forgetRefusals();
      setCertificates(certificatesOf(next));
      changes.record({ action: 'reload', by: 'file', before, after: next.version });
      recordTokenChange(admin.tokens, next.admin.tokens);
      const edits = planEdits(plans, next.plans);
      events.record({ kind: 'reload', before, after: next.version, edits });
    },
    reportFailedReload(error, version) {
      lastReloadError = error;
      const before = snapshot.settings.version;
      const after = version === undefined ? {} : { after: version };
      changes.record({ action: 'reload_failed', by: 'file', before, ...after, error });
      events.record({ kind: 'reload_failed', before, after: version, error });
    },
    async drain({ graceMs }) {
      phase = 'draining';
      await sleep(graceMs);
      // A tunnel does not end by itself. By now load balancers have turned away, so its client reconnects elsewhere.
      forwarder.drainTunnels();
      await listener.drain({ deadlineMs: bounds.drainDeadlineMs });
      await Promise.all([
        limiter.close(),
        usage?.close(),
        forwarder.close(),
        presence.close(),
        changes.close(),
        events.close(),
      ]);
      recentFigures.close();
      records?.close();
      directoryRecords?.close();
      admin.close();
      clearInterval(noticeTimer);
    },
  };
}

function serversAway(store: StoreState): number {
  if (store.kind === 'memory' || store.available) return 0;
  return store.servers?.filter(({ available }) => !available).length ?? 1;
}

/** What the usage record needs of an exchange that is over. */
function endedExchange(exchange: Exchange, nowMs: () => number): EndedExchange {
  const { key, decision, decidedMs, offered, status, startedMs, endedMs, upstream } = exchange;
  return {
    // What a bucket decides is in no key's record.
    keyId: decidedMs === undefined ? undefined : key?.id,
    atMs: decision?.rateLimit.nowMs ?? nowMs(),
    operationId: offered?.operation.id ?? '',
    status,
    ending: trafficEndingOf(exchange),
    // A WebSocket is over when it is closed.
    ownMs: status === 101 ? undefined : endedMs - startedMs - (upstream?.upstreamMs ?? 0),
    upstreamMs: upstream?.upstreamMs,
  };
}

function trafficEndingOf({ decidedMs, decision, fault, status }: Exchange): EndedExchange['ending'] {
  if (status >= 500) return fault === 'upstream' ? 'failedByUpstream' : 'failedByGateway';
  if (decidedMs === undefined) return status < 400 ? 'served' : 'rejected';
  return decision?.kind === 'banned' || decision?.kind === 'refused' ? decision.kind : 'served';
}
