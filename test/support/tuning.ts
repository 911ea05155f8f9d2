import type { WindowsMs } from '../../gateway/limit/calendar-windows.ts';
import type { Bounds } from '../../gateway/timeouts-and-sizes.ts';

/** What no configuration sets and a test must: see `startGateway`. */
export interface Tuning {
  /** How far this process's clock is off. */
  readonly clockSkewMs?: number;
  /** Windows of seconds, so that a test can cross their boundaries. */
  readonly windowsMs?: Partial<WindowsMs>;
  /** Shorter timeouts, so that a test can outlast them. */
  readonly bounds?: Partial<Bounds>;
  /** A file of addresses, one a line: what every host name resolves to. */
  readonly hostsFile?: string;
}

/**
 * A store that is slow because the machine is busy stays in charge: for tests of what is shared, where a decision that
 * a process takes alone after `bounds.storeDeadlineMs` would be right and the count of them wrong.
 */
export const patientStore = {
  storeDeadlineMs: 20_000,
  storeSilenceMaxMs: 20_000,
  storeStartTimeoutMs: 20_000,
} as const satisfies Tuning['bounds'];

/** For tests in which Redis does go or is slow: ten times the deadline that ships, so that a busy machine is not taken for an outage. */
export const steadyStore = {
  ...patientStore,
  storeDeadlineMs: 500,
  storeSilenceMaxMs: 2_000,
} as const satisfies Tuning['bounds'];
