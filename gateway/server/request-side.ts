import type { IncomingMessage } from 'node:http';
import { accessLine } from '../observe/access-line.ts';
import type { Log } from '../observe/create-log.ts';
import { createLastMinute } from '../observe/metrics/last-minute.ts';
import { createRecentFigures } from '../observe/metrics/recent-figures.ts';
import { createRequestMetrics } from '../observe/metrics/request-metrics.ts';
import { Exchange, failureOf, ownMsOf, upstreamMsOf } from '../request/exchange.ts';
import { createForwarder } from '../request/forward/forwarder.ts';
import { createListener, type Listener } from '../request/listen/listener.ts';
import { createReferenceAssets } from '../request/pages/api-reference.ts';
import { UnreadPages } from '../request/pages/unread-pages.ts';
import { serveExchange } from '../request/request-path.ts';
import { routeRequest } from '../request/route/operation-table.ts';
import { createSnapshot } from '../request/snapshot.ts';
import type { Stations } from '../request/stations.ts';
import { createEventLoopBatch } from '../shared/event-loop-batch.ts';
import type { Settings, TargetEvent } from '../shared/model.ts';
import type { Bounds } from '../shared/timeouts-and-sizes.ts';
import { createFailedHandshakes } from '../shared/tls/failed-handshakes.ts';
import type { EndedExchange } from '../usage/recorder.ts';
import type { Counted, ServingProcess } from './served.ts';
import type { Stores } from './stores.ts';
import { createTunnelWatch } from './tunnel-watch.ts';

/** What serves requests: the public listener, and the stations behind it. */
export interface RequestSide extends Pick<Listener, 'listen' | 'alsoAccept'> {
  /** Puts new settings in force; requests in flight finish on the snapshot they began with. */
  reload(settings: Settings): void;
  process(): ServingProcess;
  counted(): Counted;
  /**
   * Tunnels are closed, no connection is accepted any more, and requests in flight finish with `Connection: close`. After
   * `bounds.drainDeadlineMs` the rest is cut.
   */
  drain(): Promise<void>;
}

export interface RequestSideOptions {
  readonly settings: Settings;
  /** Drawn when the process starts. */
  readonly processId: string;
  readonly stores: Pick<Stores, 'limiter' | 'directory' | 'usage'>;
  readonly log: Pick<Log, 'logger' | 'access'>;
  /** Hears what is logged of the health of targets. */
  readonly onEvent: (event: TargetEvent) => void;
  readonly bounds: Bounds;
  /** The gateway's clock, epoch ms. */
  readonly nowMs: () => number;
  /** Of this process. */
  readonly pid: number;
  /** Where there are several, its number. */
  readonly worker?: number | undefined;
  /** Shared by all of them: see `tls-front.ts`. */
  readonly ticketSecret?: Uint8Array | undefined;
}

/** Creates the stations of the request path and connects them. */
export function createRequestSide({
  settings,
  processId,
  stores: { limiter, directory, usage },
  log: { logger, access },
  onEvent,
  bounds,
  nowMs,
  pid,
  worker,
  ticketSecret,
}: RequestSideOptions): RequestSide {
  const startedAt = new Date(nowMs()).toISOString();
  const referenceAssets = createReferenceAssets();
  let snapshot = createSnapshot(settings, referenceAssets, directory);
  let configLoadedAt = startedAt;

  const metrics = createRequestMetrics();
  const recentFigures = createRecentFigures(metrics, bounds);
  const lastMinute = createLastMinute(metrics, { nowMs, bounds });
  const atTurnEnd = createEventLoopBatch();
  const forwarder = createForwarder({
    upstreams: settings.upstreams,
    log: logger,
    onEvent,
    bounds,
    atTurnEnd,
    nowMs,
  });
  const stations: Stations = {
    limiter,
    forwarder,
    atTurnEnd,
    unreadPages: new UnreadPages(bounds),
    directory,
    usage: usage?.recorder,
    bounds,
    nowMs,
    records: [
      (exchange) => access(accessLine(exchange)),
      metrics.end,
      (exchange) => usage?.recorder.ended(endedExchange(exchange, limiter.storeNowMs)),
    ],
    reportBug: (bug, exchange) => reportBug(bug, exchange.id),
  };

  const tunnelWatch = createTunnelWatch({
    forwarder,
    snapshot: () => snapshot,
    reader: stations,
    log: logger,
    bounds,
  });

  function reportBug(bug: unknown, requestId?: string): void {
    logger.error({ err: bug, requestId }, 'a bug in the request path');
  }

  const failedHandshakes = createFailedHandshakes(logger, bounds);
  const listener = createListener({
    handlers: {
      onArrival(arrival) {
        metrics.begin();
        void serveExchange(new Exchange(arrival, snapshot), stations);
      },
      wantsUpgrade: (req) => isWebSocketOperation(req),
      reportBug,
      onFailedHandshake: (reason) => failedHandshakes.count('listen', reason),
    },
    bounds,
    certificate: settings.listen.tls,
    ticketSecret,
  });

  function isWebSocketOperation(req: IncomingMessage): boolean {
    if (req.headers.upgrade?.toLowerCase() !== 'websocket') return false;
    const path = (req.url ?? '').split('?', 1)[0] ?? '';
    const route = routeRequest(snapshot.operations, req.method ?? '', path);
    return route.kind === 'operation' && route.offered.operation.upgrade === 'websocket';
  }

  return {
    listen: listener.listen,
    alsoAccept: listener.alsoAccept,
    reload(next) {
      snapshot = createSnapshot(next, referenceAssets, directory);
      configLoadedAt = new Date(nowMs()).toISOString();
      forwarder.setUpstreams(next.upstreams);
      limiter.forgetRefusals();
      tunnelWatch.check();
      if (next.listen.tls) listener.setCertificate(next.listen.tls);
    },
    process() {
      const store = limiter.state();
      return {
        id: processId,
        pid,
        ...(worker !== undefined && { worker }),
        startedAt,
        configVersion: snapshot.settings.version,
        configLoadedAt,
        recent: recentFigures.read(),
        lastMinute: lastMinute.read(),
        connections: listener.connections(),
        inFlight: metrics.inFlight(),
        store:
          store.kind === 'memory'
            ? { kind: store.kind, available: true }
            : { kind: store.kind, available: store.available, sinceAt: store.since },
        upstreams: forwarder.state(),
        heldKeys: directory?.counts().heldKeys ?? 0,
      };
    },
    counted() {
      const { calls, decidedLocally } = limiter.counts();
      return {
        requests: metrics.counts(),
        storeCalls: calls,
        decidedLocally,
        lookUps: directory?.counts().lookUps ?? new Map(),
        lostRequests: usage?.state().lostRequests ?? 0,
      };
    },
    async drain() {
      // A tunnel does not end by itself. By now load balancers have turned away, so its client reconnects elsewhere.
      tunnelWatch.close();
      forwarder.drainTunnels();
      await listener.drain({ deadlineMs: bounds.drainDeadlineMs });
      await forwarder.close();
      recentFigures.close();
      lastMinute.close();
    },
  };
}

/** What the usage record needs of an exchange that is over. */
function endedExchange(exchange: Exchange, storeNowMs: () => number): EndedExchange {
  const { key, invalidSecret, decision, decidedMs, offered, status } = exchange;
  return {
    // What a bucket decides is in no key's record.
    keyId: decidedMs === undefined ? undefined : key?.id,
    unauthorized: unauthorizedOf(invalidSecret),
    atMs: decision?.rateLimit.nowMs ?? storeNowMs(),
    operationId: offered?.operation.id ?? '',
    status,
    ending: trafficEndingOf(exchange),
    ownMs: ownMsOf(exchange),
    upstreamMs: upstreamMsOf(exchange),
  };
}

function unauthorizedOf(secret: Exchange['invalidSecret']): EndedExchange['unauthorized'] {
  return secret?.keyId === undefined ? undefined : { keyId: secret.keyId, digestStart: secret.digestStart };
}

function trafficEndingOf(exchange: Exchange): EndedExchange['ending'] {
  const { decidedMs, decision, status } = exchange;
  const failure = failureOf(exchange);
  if (failure !== undefined) return failure === 'upstream' ? 'failedByUpstream' : 'failedByGateway';
  if (decidedMs === undefined) return status < 400 ? 'served' : 'rejected';
  // Too many unfinished bodies, or WebSockets, of one key.
  if (status >= 500) return 'refused';
  return decision?.kind === 'banned' || decision?.kind === 'refused' ? decision.kind : 'served';
}
