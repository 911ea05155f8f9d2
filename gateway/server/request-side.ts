import type { IncomingMessage } from 'node:http';
import { hostname } from 'node:os';
import { joinCounts, partsOf, readKeyMembers } from '../capabilities/interfaces/join-parts.ts';
import type { KeyChange } from '../fleet/changes.ts';
import type { TargetEvent } from '../fleet/kinds/targets.ts';
import { accessLine } from '../observe/access-line.ts';
import { createBasePathWatch } from '../observe/base-path-watch.ts';
import type { Log } from '../observe/create-log.ts';
import { createForwardedForWatch } from '../observe/forwarded-for-watch.ts';
import { createRecentFigures } from '../observe/metrics/recent-figures.ts';
import { createRequestMetrics } from '../observe/metrics/request-metrics.ts';
import { type Decided, Exchange, failureOf, ownMsOf, upstreamMsOf } from '../request/exchange.ts';
import { createForwarder } from '../request/forward/forwarder.ts';
import { createFleetHealth } from '../request/forward/upstream/fleet/fleet-health.ts';
import { createListener } from '../request/listen/listener.ts';
import { screenUri } from '../request/listen/screen-uri.ts';
import { createReferenceAssets } from '../request/pages/api-reference.ts';
import { UnreadPages } from '../request/pages/unread-pages.ts';
import { compileHooks } from '../request/path/compile-hooks.ts';
import { serveExchange } from '../request/request-path.ts';
import { routeRequest } from '../request/route/operation-table.ts';
import { createSnapshot } from '../request/snapshot.ts';
import type { Stations } from '../request/stations.ts';
import { createEventLoopBatch } from '../shared/event-loop-batch.ts';
import { groupNames, limitsOn } from '../shared/limits.ts';
import type { Limits, Settings } from '../shared/model.ts';
import type { Bounds } from '../shared/timeouts-and-sizes.ts';
import { createFailedHandshakes } from '../shared/tls/failed-handshakes.ts';
import type { EndedExchange } from '../usage/record/recorder.ts';
import { followPlanChanges } from './plan-changes.ts';
import type { Counted, ServingProcess } from './served.ts';
import type { Stores } from './stores.ts';
import { createTunnelWatch } from './tunnel-watch.ts';

export type RequestSide = ReturnType<typeof createRequestSide>;

interface RequestSideOptions {
  readonly settings: Settings;
  /** A random id per start of the process. */
  readonly processId: string;
  readonly stores: Pick<
    Stores,
    'limiter' | 'directory' | 'blocked' | 'capabilities' | 'usage' | 'flushed' | 'records'
  >;
  readonly log: Pick<Log, 'logger' | 'access'>;
  /** Called for each logged change of a target's health. */
  readonly onEvent: (event: TargetEvent) => void;
  /** Receives each change that the holder of a key has made to the key. */
  readonly onKeyChange: (change: KeyChange) => void;
  readonly bounds: Bounds;
  /** The gateway's clock, epoch ms. */
  readonly nowMs: () => number;
  /** The process id. */
  readonly pid: number;
  /** Number of the worker; absent in a gateway without workers. */
  readonly worker?: number | undefined;
  /** The secret that all workers share; see `tls-front.ts`. */
  readonly ticketSecret?: Uint8Array | undefined;
}

/** Serves API requests: the public listener and the request path behind it. */
export function createRequestSide({
  settings,
  processId,
  stores: { limiter, directory, blocked, capabilities, usage, flushed, records },
  log: { logger, access },
  onEvent,
  onKeyChange,
  bounds,
  nowMs,
  pid,
  worker,
  ticketSecret,
}: RequestSideOptions) {
  const startedAt = new Date(nowMs()).toISOString();
  const parts = partsOf(capabilities);
  const sources = { directory, blocked };
  const metrics = createRequestMetrics();
  const basePathWatch = createBasePathWatch(logger, (path) => hooks.pages.has(path), bounds);
  const forwardedForWatch = createForwardedForWatch(logger, { nowMs, bounds });
  const hookSources = {
    assets: createReferenceAssets(),
    recordDecision: usage && recordDecision,
    recordEnd: [
      (exchange: Exchange) => access(accessLine(exchange)),
      metrics.end,
      basePathWatch.ended,
      forwardedForWatch.ended,
      ...(usage === undefined ? [] : [recordUsage]),
    ],
    parts,
  };
  const planChanges = followPlanChanges({
    limiter,
    parts,
    bounds,
    onChange(next) {
      compile(next);
      limiter.forgetRefusals();
    },
  });
  const first = planChanges.take(settings);
  let snapshot = createSnapshot(first, sources);
  let hooks = compileHooks(first, hookSources);
  let configLoadedAt = startedAt;
  /** Whether a drain has begun to cut the requests that are still in progress. */
  let cutsConnections = false;

  const recentFigures = createRecentFigures(metrics, { nowMs, bounds });
  const atTurnEnd = createEventLoopBatch();
  const fleetHealth = records && createFleetHealth({ records, processId, bounds });
  const forwarder = createForwarder({
    upstreams: settings.upstreams,
    sharedChecks: fleetHealth && { fleet: fleetHealth, machine: hostname() },
    log: logger,
    onEvent,
    bounds,
    atTurnEnd,
    nowMs,
  });
  const stations: Stations = {
    limiter,
    readKeyMembers: (keyIds) => readKeyMembers(parts, keyIds),
    forwarder,
    atTurnEnd,
    unreadPages: new UnreadPages(bounds),
    directory,
    blocked,
    recordKeyChange: onKeyChange,
    bounds,
    nowMs,
    reportBug: (bug, exchange) => reportBug(bug, exchange.id),
  };

  const tunnelWatch = createTunnelWatch({
    forwarder,
    snapshot: () => snapshot,
    reader: stations,
    log: logger,
    bounds,
  });

  /** Makes the snapshot and the hooks for later requests. */
  function compile(next: Settings): void {
    snapshot = createSnapshot(next, sources);
    hooks = compileHooks(next, hookSources);
  }

  function recordDecision({ key, decision, address }: Decided, units: number): void {
    const trial = key.trial && { limits: key.trial, cost: units };
    usage?.recorder.decided(key.id, decision, address, key.digestStart, trial);
  }

  function recordUsage(exchange: Exchange): void {
    usage?.recorder.ended(endedExchange(exchange, { storeNowMs: limiter.storeNowMs, cutsConnections }));
  }

  function reportBug(bug: unknown, requestId?: string): void {
    logger.error({ err: bug, requestId }, 'a bug in the request path');
  }

  const failedHandshakes = createFailedHandshakes(logger, bounds);
  const listener = createListener({
    handlers: {
      onArrival(arrival) {
        metrics.begin();
        void serveExchange(new Exchange(arrival, snapshot), stations, hooks);
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
    const { method = '', url = '' } = req;
    const uri = screenUri(url, method, bounds.targetBytesMax);
    if (uri.kind === 'refused') return false;
    const route = routeRequest(snapshot.operations, method, uri.plainPath);
    return route.kind === 'operation' && route.offered.operation.upgrade === 'websocket';
  }

  return {
    async listen(...at: Parameters<typeof listener.listen>) {
      await Promise.all([planChanges.settled(), blocked.started, ...parts.map(({ started }) => started)]);
      return listener.listen(...at);
    },
    alsoAccept: listener.alsoAccept,
    /** Puts new settings into effect. A request in flight keeps the snapshot with which it began. */
    reload(next: Settings) {
      compile(planChanges.take(next));
      configLoadedAt = new Date(nowMs()).toISOString();
      forwarder.setUpstreams(next.upstreams);
      limiter.forgetRefusals();
      for (const part of parts) part.reloaded?.();
      tunnelWatch.check();
      if (next.listen.tls) listener.setCertificate(next.listen.tls);
    },
    process(): ServingProcess {
      const store = limiter.state();
      return {
        id: processId,
        pid,
        worker,
        startedAt,
        configVersion: snapshot.settings.version,
        configLoadedAt,
        ...recentFigures.read(),
        connections: listener.connections(),
        inFlight: metrics.inFlight(),
        store:
          store.kind === 'memory'
            ? { kind: store.kind, available: true }
            : { kind: store.kind, available: store.available, sinceAt: store.since },
        upstreams: forwarder.state(),
        flushed: flushed(),
        heldKeys: directory?.counts().heldKeys ?? 0,
        unreadForwardedFor: forwardedForWatch.state(),
      };
    },
    counted(): Counted {
      const { calls, decidedLocally } = limiter.counts();
      return {
        requests: metrics.counts(),
        storeCalls: calls,
        decidedLocally,
        lookUps: directory?.counts().lookUps ?? new Map(),
        lostRequests: usage?.state().lostRequests ?? 0,
        ofParts: joinCounts(parts),
      };
    },
    /**
     * Closes WebSockets and accepts no more connections. Requests in flight finish with `Connection: close`. After `bounds.drainDeadlineMs`
     * the remaining connections are closed.
     */
    async drain() {
      // A WebSocket stays open until one side closes it. By now, load balancers send new connections to other gateways, so the client
      // reconnects to another gateway.
      planChanges.close();
      tunnelWatch.close();
      forwarder.drainTunnels();
      await listener.drain({
        deadlineMs: bounds.drainDeadlineMs,
        onCut() {
          cutsConnections = true;
        },
      });
      await forwarder.close();
      fleetHealth?.close();
      recentFigures.close();
      basePathWatch.close();
    },
  };
}

/** The part of a finished exchange that is written to the usage record. */
function endedExchange(
  exchange: Exchange,
  { storeNowMs, cutsConnections }: { readonly storeNowMs: () => number; readonly cutsConnections: boolean },
): EndedExchange {
  const { key, invalidSecret, decision, decidedMs, offered, status, countedAs, address } = exchange;
  const { status: secretStatus, keyId, digestStart } = invalidSecret ?? {};
  const isOtherAddress = secretStatus === 'address_not_allowed';
  return {
    // A decision of an address bucket belongs to no key, so it is not recorded.
    keyId: decidedMs === undefined ? undefined : key?.id,
    unauthorized:
      digestStart === undefined || isOtherAddress
        ? undefined
        : { keyId, digestStart, address, isUnread: secretStatus === 'unread' },
    refusedAddress: isOtherAddress && keyId !== undefined ? { keyId, address } : undefined,
    atMs: decision?.rateLimit.nowMs ?? storeNowMs(),
    operationId: offered?.operation.id ?? '',
    status,
    failed: failedCharge(exchange, cutsConnections),
    countedAs,
    ending: trafficEndingOf(exchange),
    ownMs: ownMsOf(exchange),
    upstreamMs: upstreamMsOf(exchange),
  };
}

/**
 * Returns the charge of a request that failed because of the gateway or the upstream; undefined for any other request. If a drain cuts the
 * connection of a request, the request looks as if the client had closed the connection.
 */
function failedCharge(exchange: Exchange, cutsConnections: boolean): EndedExchange['failed'] {
  const { decidedMs, decision, status, offered, key } = exchange;
  if (decidedMs === undefined || decision?.kind !== 'admitted' || decision.units === 0) return undefined;
  const isCutByDrain = cutsConnections && status === 499;
  if (failureOf(exchange) === undefined && !isCutByDrain) return undefined;
  // The trial refuses a request that is too expensive for it, so each request that it admits costs the same as in the plan.
  const groupsIn = (limits: Limits = []) => groupNames(limitsOn(limits, offered?.operation.id));
  const inTrial =
    decision.trial === 'admitted' ? ['trial', ...groupsIn(key?.trial).map((name) => `trial.${name}`)] : [];
  const buckets = ['plan', ...groupsIn(key?.limits), ...inTrial];
  const { units } = decision;
  return { charged: buckets.map((bucket) => ({ bucket, units })), upstream: offered?.operation.upstream };
}

function trafficEndingOf(exchange: Exchange): EndedExchange['ending'] {
  const { decidedMs, decision, status } = exchange;
  const failure = failureOf(exchange);
  if (failure !== undefined) return failure === 'upstream' ? 'failedByUpstream' : 'failedByGateway';
  if (decidedMs === undefined) return status < 400 ? 'served' : 'rejected';
  // The key has too many unfinished request bodies or WebSockets.
  if (status >= 500) return 'refused';
  if (decision?.kind === 'crowded') return 'refused';
  return decision?.kind === 'banned' || decision?.kind === 'refused' ? decision.kind : 'served';
}
