import { capabilityFaults } from '../../capabilities/lists/events.ts';
import { joinFailing, joinFigures } from '../../fleet/failing/failing-upstreams.ts';
import type { Fleet, KnownProcess } from '../../fleet/presence.ts';
import type { Fault, Severity, UpstreamSeen } from '../../fleet/process-state.ts';
import { timeText } from '../../fleet/wording.ts';
import type { Bounds } from '../../shared/timeouts-and-sizes.ts';
import { counted, figure, listOf, percent } from '../../shared/words/figures.js';
import { type GatewayState, whileAwayText } from '../readiness.ts';
import type { Verdict } from '../wires/fleet/verdict.ts';

/** Requests fail in the gateway or at an upstream. The fault with the larger share of failed requests comes first. */
const failures = ['gateway_fails_requests', 'upstream_fails_requests'];

/**
 * The codes of faults, the most serious first. A fault that customers notice is listed before a fault that may cause
 * it.
 */
const order: readonly string[] = [
  'no_worker',
  ...failures,
  'redis_away',
  'upstream_down',
  'certificate_expired',
  'redis_commands_refused',
  'redis_emptied',
  'targets_down',
  'lookup_failed',
  'workers_missing',
  ...capabilityFaults,
  'configuration_differs',
  'configuration_invalid',
];
const severities: readonly Severity[] = ['bad', 'warning', 'notice'];

/** The largest number of addresses in a sentence. */
const namedMax = 3;

/**
 * Finds the faults of the fleet, with a severity and a sentence for each fault. Pages and commands show this result
 * without further checks.
 *
 * If several processes report a fault, the earliest reported start time counts. A restarted process therefore does not
 * change the start time of an outage.
 *
 * @param own the faults of the gateway that makes the response, which may have no published process
 */
export function judgeFleet({
  store,
  hasDirectory,
  fleet,
  own,
  nowMs,
  bounds,
}: {
  /** The state of the store at the process that makes the response. */
  readonly store: GatewayState['store'];
  readonly hasDirectory: boolean;
  readonly fleet: Fleet;
  readonly own: readonly Fault[];
  readonly nowMs: number;
  readonly bounds: Bounds;
}): Verdict {
  const { processes } = fleet;
  const inGateway = gatewayFailing(processes, nowMs, bounds);
  const away = storeFaults({ store, hasDirectory }, fleet, inGateway);
  const failing = [...(away.length > 0 ? [] : inGateway), ...upstreamsFailing(processes)].sort(
    (a, b) => b.share - a.share,
  );
  const faults = [
    ...failing.map(({ share: _, ...fault }) => fault),
    ...away,
    ...upstreamFaults(processes),
    ...gatewayFaults(processes, own),
    ...configurationFaults(processes),
  ].sort((a, b) => rankOf(a) - rankOf(b));
  const [first] = faults;
  if (first === undefined || first.severity === 'notice') {
    return { severity: 'well', sentence: `All well. ${trafficSentence(processes)}`, faults };
  }
  return { severity: first.severity, sentence: first.text, faults };
}

function rankOf({ severity, code }: Fault): number {
  const place = order.indexOf(failures.includes(code) ? 'gateway_fails_requests' : code);
  return severities.indexOf(severity) * (order.length + 1) + (place === -1 ? order.length : place);
}

interface Failing extends Fault {
  /** The share of failed requests, from 0 to 1. */
  readonly share: number;
}

/** Returns a fault if too many requests fail in the gateway. If Redis was away, the text names this cause. */
function gatewayFailing(
  processes: readonly KnownProcess[],
  nowMs: number,
  { failingRequestsMin, failingShareMin, failuresShownMs }: Bounds,
): Failing[] {
  const requests = sumOf(processes, ({ lastMinute }) => lastMinute.requests);
  const failed = sumOf(processes, ({ lastMinute }) => lastMinute.failed.gateway.requests);
  const sinceAt = earliest(processes.map(({ lastMinute }) => lastMinute.failed.gateway.sinceAt));
  if (failed < failingRequestsMin || failed / requests < failingShareMin || sinceAt === undefined) return [];
  const back = processes.flatMap(({ store: { available, sinceAt: backAt = '' } }) =>
    available && backAt > sinceAt && nowMs - Date.parse(backAt) <= failuresShownMs ? [backAt] : [],
  );
  const [lastBack] = back.toSorted().reverse();
  const cause =
    lastBack === undefined ? '' : `: Redis was away until ${timeText(Date.parse(lastBack), nowMs)}`;
  const share = failed / requests;
  const text = `${percent(share)} of the requests of the last minute failed in the gateway (${figure(failed)} × 5xx or cut off)${cause}.`;
  return [{ severity: 'bad', code: 'gateway_fails_requests', text, sinceAt, share }];
}

/**
 * Returns a fault for each upstream that fails, as a gateway finds (`fleet/failing/`). The figures are from all processes. If the upstream has
 * no healthy target, the text names this cause.
 */
function upstreamsFailing(processes: readonly KnownProcess[]): Failing[] {
  const figures = joinFigures(processes);
  const upstreams = processes.flatMap((one) => one.upstreams);
  return [...joinFailing(processes)].map(([name, sinceAt]) => {
    const { requests, failed } = figures.get(name) ?? { requests: 0, failed: 0 };
    const isOnly = upstreams.every((one) => one.name === name);
    const where = isOnly ? 'the upstream' : `the upstream ${name}`;
    const cause = upstreams.some((one) => one.name === name && isDead(one))
      ? ': it has no healthy target'
      : '';
    const text =
      failed === 0
        ? `Many requests to ${where} failed, but none in the last minute.`
        : `${percent(failed / requests)} of the requests to ${where} failed in the last minute (${figure(failed)} × 5xx or cut off)${cause}.`;
    const severity = failed === 0 ? 'warning' : 'bad';
    const share = requests === 0 ? 0 : failed / requests;
    return { severity, code: 'upstream_fails_requests', text, sinceAt, share };
  });
}

/** The fault of Redis, which is the cause of the requests that fail in the gateway. */
function storeFaults(
  { store, hasDirectory }: Pick<GatewayState, 'store' | 'hasDirectory'>,
  { processes, isComplete }: Fleet,
  failing: readonly Fault[],
): Fault[] {
  const away = processes.filter((one) => !one.store.available);
  const seen = away.map((one) => one.store.sinceAt ?? one.startedAt);
  const fault = (what: string, sinceAt: string): Fault[] => {
    const text = [what, ...failing.map((one) => one.text)].join(' ');
    return [{ severity: 'bad', code: 'redis_away', text, sinceAt }];
  };
  if (store.kind === 'memory' || store.available) {
    const [first] = seen.toSorted();
    if (first === undefined) return [];
    const names = shortList(away.map(nameOf));
    return fault(`Redis is away for ${partOf(away.length, processes.length)}: ${names}.`, first);
  }
  const { servers = [], onFailure, reason, since } = store;
  const gone = servers.filter(({ available }) => !available);
  const isPart = gone.length < servers.length;
  const what = isPart
    ? `${figure(gone.length)} of ${figure(servers.length)} servers of Redis (${shortList(gone.map(({ name }) => name))})`
    : 'Redis';
  const effect = whileAwayText(isPart ? { onFailure, whose: 'their' } : { onFailure, hasDirectory });
  const why = isPart || reason === undefined ? '' : ` (${reason})`;
  const verb = isPart && gone.length > 1 ? 'are' : 'is';
  const known = isComplete ? '' : ', and only this gateway is known here';
  return fault(`${what} ${verb} away${why}: ${effect}${known}.`, earliest([since, ...seen]) ?? since);
}

function upstreamFaults(processes: readonly KnownProcess[]): Fault[] {
  const seen = processes.flatMap(({ upstreams, startedAt }) =>
    upstreams.map((upstream) => ({ ...upstream, startedAt })),
  );
  const byName = Map.groupBy(seen, ({ name }) => name);
  return [...byName].flatMap(([name, views]) => {
    const title = byName.size > 1 ? `The upstream ${name}` : 'The upstream';
    return [...deadFault(title, views), ...lookupFault(title, views)];
  });
}

function isDead({ targets, omittedTargets = 0 }: UpstreamSeen): boolean {
  return omittedTargets === 0 && targets.every(({ healthy }) => !healthy);
}

type UpstreamView = UpstreamSeen & Pick<KnownProcess, 'startedAt'>;

/** Returns the fault of an upstream with unhealthy targets. */
function deadFault(title: string, views: readonly UpstreamView[]): Fault[] {
  const dead = views.filter(isDead);
  const unhealthy = views.flatMap(({ targets }) => targets.filter(({ healthy }) => !healthy));
  if (dead.length > 0) {
    // The upstream has been down since its last healthy target became unhealthy.
    const since = dead.map(
      ({ targets, lookupErrorSinceAt, startedAt }) =>
        targets
          .map(({ sinceAt }) => sinceAt)
          .toSorted()
          .at(-1) ??
        lookupErrorSinceAt ??
        startedAt,
    );
    const known = dead.flatMap(({ targets }) => targets);
    const reason = known.find((target) => target.reason !== undefined)?.reason;
    const why = reason === undefined ? '' : ` (${reason})`;
    const isAll = dead.length === views.length;
    const whom = isAll ? '' : ` for ${partOf(dead.length, views.length)}`;
    const what = known.length === 0 ? 'has no target' : `has no healthy target${why}`;
    const text = `${title} ${what}${whom}: ${isAll ? 'its requests' : 'their requests to it'} fail.`;
    return [{ severity: 'bad', code: 'upstream_down', text, sinceAt: since.toSorted()[0] ?? '' }];
  }
  const [first] = unhealthy.map(({ sinceAt }) => sinceAt).toSorted();
  if (first === undefined) return [];
  const all = new Set(views.flatMap(({ targets }) => targets.map(({ address }) => address)));
  const down = [...Map.groupBy(unhealthy, ({ address }) => address)].map(([address, seenDown]) => {
    const reason = seenDown.find((target) => target.reason !== undefined)?.reason;
    const has = views.filter(({ targets }) => targets.some((target) => target.address === address)).length;
    const whom = seenDown.length === has ? '' : ` for ${partOf(seenDown.length, has)}`;
    return `${address}${whom}${reason === undefined ? '' : ` (${reason})`}`;
  });
  const verb = down.length === 1 ? 'is' : 'are';
  const text = `${figure(down.length)} of ${counted(all.size, 'target')} of ${lowerCase(title)} ${verb} down: ${shortList(down)}.`;
  return [{ severity: 'warning', code: 'targets_down', text, sinceAt: first }];
}

/** Returns the fault when DNS lookups of the upstream fail. The addresses of the last successful lookup stay in use. */
function lookupFault(title: string, views: readonly UpstreamView[]): Fault[] {
  const failing = views.filter(({ lookupError }) => lookupError !== undefined);
  const [first] = failing;
  if (first === undefined) return [];
  const sinceAt = earliest(failing.map((view) => view.lookupErrorSinceAt ?? view.startedAt)) ?? '';
  const severity = failing.some(({ targets, omittedTargets = 0 }) => targets.length + omittedTargets === 0)
    ? 'bad'
    : 'warning';
  const whom = failing.length === views.length ? '' : ` for ${partOf(failing.length, views.length)}`;
  const text = `The host name of ${lowerCase(title)} cannot be looked up${whom}: ${first.lookupError}.`;
  return [{ severity, code: 'lookup_failed', text, sinceAt }];
}

/**
 * Merges the faults of all gateways. Each process publishes the faults of its gateway, and `own` has the faults of this
 * gateway.
 */
function gatewayFaults(processes: readonly KnownProcess[], own: readonly Fault[]): Fault[] {
  const identity = ({ code, text }: Fault) => `${code} ${text}`;
  const published = processes.flatMap((seenBy) => seenBy.faults.map((fault) => ({ fault, seenBy })));
  const all = Map.groupBy(published, ({ fault }) => identity(fault));
  const merged = [...all.values()].flatMap((same) => {
    const [first] = same;
    if (first === undefined) return [];
    const sinceAt = earliest(same.map(({ fault }) => fault.sinceAt)) ?? first.fault.sinceAt;
    const where = shortList(same.map(({ seenBy }) => nameOf(seenBy)));
    const { text } = first.fault;
    return [
      {
        ...first.fault,
        text: same.length === processes.length ? text : `On ${where}: ${lowerCase(text)}`,
        sinceAt,
      },
    ];
  });
  return [...merged, ...own.filter((one) => !all.has(identity(one)))];
}

/**
 * Returns a fault when processes have different versions of the configuration. The most common version counts as the
 * expected version. The fault began when a process first loaded a version other than the oldest version.
 */
function configurationFaults(processes: readonly KnownProcess[]): Fault[] {
  const byVersion = [...Map.groupBy(processes, ({ configVersion }) => configVersion)];
  const [usual] = byVersion.toSorted(([, a], [, b]) => b.length - a.length);
  if (usual === undefined || byVersion.length === 1) return [];
  const [version] = usual;
  const others = processes.filter(({ configVersion }) => configVersion !== version);
  const loaded = byVersion.map(([, having]) => earliest(having.map((one) => one.configLoadedAt)) ?? '');
  const list = shortList(others.map((one) => `${nameOf(one)} has ${one.configVersion.slice(0, 6)}`));
  const verb = others.length === 1 ? 'has' : 'have';
  const text = `${partOf(others.length, processes.length)} ${verb} another configuration than ${version.slice(0, 6)}: ${list}.`;
  return [{ severity: 'warning', code: 'configuration_differs', text, sinceAt: loaded.toSorted()[1] ?? '' }];
}

function trafficSentence(processes: readonly KnownProcess[]): string {
  const perSecond = sumOf(processes, ({ requestsPerSecond }) => requestsPerSecond);
  if (perSecond === 0) return 'No request arrived in the last ten seconds.';
  const served = `${perSecond < 10 ? perSecond.toFixed(1) : figure(Math.round(perSecond))} requests a second`;
  const limited = sumOf(processes, ({ outcomes }) => outcomes['429'] ?? 0);
  const ofAddresses = sumOf(processes, (one) => one.addressRefusalsPerSecond ?? 0);
  const rates = {
    'over a limit or banned': limited - ofAddresses,
    'over the limit of their address': ofAddresses,
    'without a valid key': sumOf(processes, (one) => one.unauthorizedPerSecond ?? 0),
  };
  const parts = Object.entries(rates).flatMap(([how, rate]) =>
    rate <= 0 ? [] : [`${percent(rate / perSecond)} ${how}`],
  );
  return parts.length === 0 ? `${served}, none refused.` : `${served}. Refused: ${listOf(parts)}.`;
}

function sumOf(processes: readonly KnownProcess[], figureOf: (process: KnownProcess) => number): number {
  return processes.reduce((sum, process) => sum + figureOf(process), 0);
}

/** Returns the earliest timestamp. Sorting the texts is correct, because ISO 8601 timestamps in UTC sort by time. */
function earliest(instants: readonly (string | undefined)[]): string | undefined {
  return instants.filter((one) => one !== undefined).toSorted()[0];
}

/** Returns a text such as "1 of 2 processes". */
function partOf(some: number, all: number): string {
  return `${figure(some)} of ${counted(all, 'process', 'processes')}`;
}

function shortList(names: readonly string[]): string {
  const more = names.length - namedMax;
  return more <= 0 ? names.join(', ') : `${names.slice(0, namedMax).join(', ')} and ${figure(more)} more`;
}

function nameOf({ host, pid }: KnownProcess): string {
  return `${host} (pid ${pid})`;
}

function lowerCase(text: string): string {
  return text.startsWith('Redis') ? text : text.charAt(0).toLowerCase() + text.slice(1);
}
