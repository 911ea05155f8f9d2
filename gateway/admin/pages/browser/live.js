import { useEffect, useRef } from 'preact/hooks';
import { usePolled } from './api.js';

/**
 * The last response of `/state`, and the totals of its processes.
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
  return { perSecond, outcomes };
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
