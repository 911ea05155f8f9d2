import type { Upstream } from '../../shared/model.ts';
import { isoOf } from '../../shared/schema/dates-and-durations.ts';
import type { Bounds } from '../../shared/timeouts-and-sizes.ts';
import type { Events } from '../events.ts';
import type { UpstreamFailureEvent } from '../kinds/upstreams.ts';
import type { Presence } from '../presence.ts';
import type { FailingUpstream, ProcessState, UpstreamFigures } from '../process-state.ts';
import { type Judgement, judgeFailures } from './judge-failures.ts';

/** The judgement of this gateway about an upstream, and the outage of the upstream. */
interface Watched {
  readonly judgement: Judgement;
  /**
   * An outage that was reported and has not ended. It lasts until no gateway finds that the upstream fails, so that several gateways report
   * one outage.
   */
  readonly outageSinceMs?: number | undefined;
  /** When to read again whether another gateway still finds that the upstream fails, epoch ms. */
  readonly readAgainMs?: number | undefined;
}

/**
 * Reports when an upstream begins to fail, and when it is well again. Each gateway judges the requests of its own processes, once a second.
 * It publishes its judgement with the states of its processes. The first gateway that finds that the upstream fails reports the outage. The
 * others take the outage from the list of events. Every gateway that took part reports the end when no gateway finds a failure, and these
 * reports are merged into one event. A gateway that starts also takes an open outage from the list, so that the outage ends if all gateways
 * were restarted.
 *
 * @param served the requests of this gateway's processes
 * @param nowMs the store's clock, epoch ms
 */
export function createFailingUpstreams({
  served,
  upstreams,
  presence,
  events,
  onEvent,
  reportBug,
  nowMs,
  bounds,
}: {
  readonly served: () => readonly Pick<ProcessState, 'id' | 'lastMinute'>[];
  readonly upstreams: () => readonly Upstream[];
  readonly presence: Pick<Presence, 'read'>;
  readonly events: Pick<Events, 'list'>;
  readonly onEvent: (event: UpstreamFailureEvent) => void;
  readonly reportBug: (bug: unknown) => void;
  readonly nowMs: () => number;
  readonly bounds: Bounds;
}) {
  let watched = new Map<string, Watched>();
  let hasReadOutages = false;
  let timer: NodeJS.Timeout | undefined;
  let isClosed = false;

  async function tick(): Promise<void> {
    try {
      if (!hasReadOutages) await takeOpenOutages();
      await judgeAll();
    } catch (bug) {
      reportBug(bug);
    } finally {
      if (!isClosed) timer = setTimeout(() => void tick(), bounds.presenceIntervalMs).unref();
    }
  }

  async function takeOpenOutages(): Promise<void> {
    const { isComplete, open } = await readOpenOutages();
    hasReadOutages = isComplete;
    for (const [name, outageSinceMs] of open) {
      const { judgement, outageSinceMs: known } = watched.get(name) ?? { judgement: { kind: 'well' } };
      const hasFailed = judgement.kind === 'failing' || judgement.last !== undefined;
      if (known !== undefined || hasFailed) continue;
      // This process has no figures from before its start, so the upstream must be calm for a whole minute.
      const taken = { kind: 'failing', holdMs: bounds.failuresShownMs, worstShare: 0 } as const;
      watched.set(name, { judgement: taken, outageSinceMs });
    }
  }

  /** Reads the outages that have not ended from the list of events. While Redis is away, the list has the events of this gateway. */
  async function readOpenOutages(): Promise<{ isComplete: boolean; open: ReadonlyMap<string, number> }> {
    const query = { kinds: new Set(['upstream_failing']), limit: bounds.eventsPerPageMax };
    const { isComplete, events: listed } = await events.list(query);
    const latest = new Map(listed.toReversed().map((event) => [event.upstream ?? '', event]));
    const open = [...latest].filter(([, { kind }]) => kind === 'upstream_failing');
    return { isComplete, open: new Map(open.map(([name, { at }]) => [name, Date.parse(at)])) };
  }

  async function judgeAll(): Promise<void> {
    const figures = joinFigures(served());
    const configured = new Map(upstreams().map((upstream) => [upstream.name, upstream]));
    const next = new Map<string, Watched>();
    for (const name of new Set([...configured.keys(), ...watched.keys()])) {
      const before: Watched = watched.get(name) ?? { judgement: { kind: 'well' } };
      const judgement = judge(before.judgement, figures.get(name), configured.get(name));
      // While this gateway waited for the end of the outage, another gateway may have reported the end.
      const isRelapse = before.judgement.kind === 'well' && judgement.kind === 'failing';
      next.set(name, isRelapse ? { judgement } : { ...before, judgement });
    }
    // This gateway publishes its new judgements before it reads the judgements of other gateways. Two gateways therefore never wait for
    // each other.
    watched = next;
    for (const [name, one] of next) {
      const isFailing = one.judgement.kind === 'failing';
      const { readAgainMs = 0 } = one;
      if (isFailing === (one.outageSinceMs !== undefined) || nowMs() < readAgainMs) continue;
      const outageSinceMs = isFailing
        ? ((await readOpenOutages()).open.get(name) ?? begin(name, figures.get(name)))
        : end(name, one, {
            isElsewhere: await isFailingElsewhere(name),
            isRemoved: !configured.has(name),
          });
      // An upstream that was removed from the configuration is forgotten when its outage has ended.
      if (configured.has(name) || outageSinceMs !== undefined) {
        const waits = !isFailing && outageSinceMs !== undefined;
        const readAgainMs = waits ? nowMs() + bounds.failingElsewhereReadMs : undefined;
        next.set(name, { judgement: one.judgement, outageSinceMs, readAgainMs });
      } else next.delete(name);
    }
  }

  /** @returns the beginning of the outage */
  function begin(upstream: string, figures: UpstreamFigures = none): number {
    onEvent({ kind: 'upstream_failing', upstream, ...figures });
    return nowMs();
  }

  /** @returns the beginning of the outage, if the outage goes on at another gateway */
  function end(
    upstream: string,
    { judgement, outageSinceMs: sinceMs = nowMs() }: Watched,
    { isElsewhere, isRemoved }: { readonly isElsewhere: boolean; readonly isRemoved: boolean },
  ): number | undefined {
    if (isElsewhere) return sinceMs;
    const {
      ended = 'recovered',
      failingMs,
      worstShare,
    } = (judgement.kind === 'well' && judgement.last) || {};
    const members = isRemoved ? ({ ended: 'removed' } as const) : { ended, failingMs, worstShare };
    onEvent({ kind: 'upstream_well', upstream, sinceMs, ...members });
    return undefined;
  }

  function judge(
    before: Judgement,
    figures: UpstreamFigures = none,
    upstream: Upstream | undefined,
  ): Judgement {
    if (upstream === undefined) return { kind: 'well' };
    return judgeFailures(before, figures, upstream.failing, {
      nowMs: nowMs(),
      minuteMs: bounds.failuresShownMs,
      holdMaxMs: bounds.failingHoldMaxMs,
    });
  }

  /** Whether another gateway finds that the upstream fails. While Redis is away, this gateway decides alone. */
  async function isFailingElsewhere(name: string): Promise<boolean> {
    const { processes } = await presence.read();
    const own = new Set(served().map(({ id }) => id));
    return processes.some(
      ({ id, failingUpstreams = [] }) => !own.has(id) && failingUpstreams.some((one) => one.name === name),
    );
  }

  return {
    start: () => void tick(),
    /** Returns the upstreams that fail, as this gateway finds. */
    read: (): readonly FailingUpstream[] =>
      [...watched].flatMap(([name, { judgement, outageSinceMs = nowMs() }]) =>
        judgement.kind === 'failing' ? [{ name, sinceAt: isoOf(outageSinceMs) }] : [],
      ),
    close() {
      isClosed = true;
      clearTimeout(timer);
    },
  };
}

const none: UpstreamFigures = { requests: 0, failed: 0 };

/** Returns the upstreams that fail, as any of several processes finds, each with the earliest beginning. */
export function joinFailing(
  processes: readonly Pick<ProcessState, 'failingUpstreams'>[],
): ReadonlyMap<string, string> {
  const all = processes.flatMap(({ failingUpstreams = [] }) => failingUpstreams);
  // ISO 8601 timestamps in UTC sort by time as texts. The last entry of a name holds.
  return new Map(
    all.toSorted((a, b) => (a.sinceAt > b.sinceAt ? -1 : 1)).map(({ name, sinceAt }) => [name, sinceAt]),
  );
}

/** Adds up the requests of several processes, by upstream. */
export function joinFigures(
  processes: readonly Pick<ProcessState, 'lastMinute'>[],
): ReadonlyMap<string, UpstreamFigures> {
  const all = Map.groupBy(
    processes.flatMap(({ lastMinute }) => lastMinute.upstreams ?? []),
    ({ name }) => name,
  );
  return new Map([...all].map(([name, seen]) => [name, seen.reduce(addFigures, none)]));
}

function addFigures(one: UpstreamFigures, other: UpstreamFigures): UpstreamFigures {
  return { requests: one.requests + other.requests, failed: one.failed + other.failed };
}
