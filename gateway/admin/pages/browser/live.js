import { usePolled } from './api.js';

/** @import { State } from '../../wires/api-types.ts' */
/** @import { Polled } from './api.js' */

/**
 * The last response of `/state`, and the totals of its processes; both undefined before the first response.
 *
 * @typedef {object} Live
 * @property {Polled<State>} polled
 * @property {State | undefined} state
 * @property {Totals | undefined} totals
 *
 * @typedef {{ perSecond: number, refusedPerSecond: number, failedByUpstream: number }} Totals
 */

/**
 * What the component of a page gets. `params` are the parameters of the path, and `live` is the last response of `/state`.
 *
 * @typedef {{ params: Record<string, string>, query: URLSearchParams, live: Live }} PageProps
 */

const stateEveryMs = 1_000;

/** @param {boolean} isAllowed @returns {Live} */
export function useLive(isAllowed) {
  const polled = usePolled(isAllowed ? '/state' : undefined, stateEveryMs);
  const state = polled.body;
  const sum = (/** @type {(one: State['processes'][number]) => number} */ of) =>
    (state?.processes ?? []).reduce((total, one) => total + of(one), 0);
  const totals = state && {
    perSecond: sum((one) => one.requestsPerSecond),
    refusedPerSecond: sum((one) => one.outcomes['429'] ?? 0),
    failedByUpstream: sum((one) => one.lastMinute.failed.upstream.requests),
  };
  return { polled, state, totals };
}
