import { useEffect, useRef } from 'preact/hooks';
import { usePolled } from './api.js';

/**
 * What `/state` said last, and the totals of the processes in it.
 *
 * @typedef {object} Live
 * @property {import('./api.js').Polled} polled
 * @property {any} state undefined before the first response
 * @property {Totals | undefined} totals
 */

/**
 * @typedef {object} Totals
 * @property {number} perSecond
 * @property {Record<string, number>} outcomes per second, by status
 * @property {number | undefined} p50Ms of the gateway's own part: weighted by the processes' requests
 * @property {number | undefined} p99Ms the highest of any process
 * @property {number | undefined} upstreamP50Ms
 * @property {number | undefined} upstreamP99Ms
 */

const stateEveryMs = 1_000;

/** @param {boolean} isAllowed @returns {Live} */
export function useLive(isAllowed) {
  const polled = usePolled(isAllowed ? '/state' : undefined, stateEveryMs);
  const state = polled.body;
  return { polled, state, totals: state && totalsOf(state.processes) };
}

/** @param {any[]} processes @returns {Totals} */
function totalsOf(processes) {
  const perSecond = processes.reduce((sum, process) => sum + process.requestsPerSecond, 0);
  /** @type {Record<string, number>} */
  const outcomes = {};
  for (const process of processes) {
    for (const [status, number] of Object.entries(process.outcomes)) {
      outcomes[status] = (outcomes[status] ?? 0) + Number(number);
    }
  }
  return {
    perSecond,
    outcomes,
    p50Ms: weighted(processes, 'p50Ms'),
    p99Ms: highest(processes, 'p99Ms'),
    upstreamP50Ms: weighted(processes, 'upstreamP50Ms'),
    upstreamP99Ms: highest(processes, 'upstreamP99Ms'),
  };
}

/** @param {any[]} processes @param {string} name */
function weighted(processes, name) {
  const known = processes.filter((process) => process[name] !== undefined);
  const requests = known.reduce((sum, process) => sum + process.requestsPerSecond, 0);
  if (known.length === 0) return undefined;
  if (requests === 0) return known[0][name];
  return known.reduce((sum, process) => sum + process[name] * process.requestsPerSecond, 0) / requests;
}

/** @param {any[]} processes @param {string} name */
function highest(processes, name) {
  const known = processes.map((process) => process[name]).filter((value) => value !== undefined);
  return known.length === 0 ? undefined : Math.max(...known);
}

/**
 * The last values of a figure, one for each response, for a small picture. They begin when the page is opened.
 *
 * @param {number | undefined} value
 * @param {number} atMs when it arrived; 0: not yet
 * @param {number} [most] how many are kept
 */
export function useHistory(value, atMs, most = 60) {
  const kept = useRef(/** @type {(number | undefined)[]} */ (Array.from({ length: most })));
  useEffect(() => {
    if (atMs === 0) return;
    kept.current = [...kept.current.slice(1), value];
  }, [atMs]);
  return kept.current;
}
