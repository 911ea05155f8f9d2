import type { WindowsMs } from '../../gateway/shared/calendar-windows.ts';
import type { Bounds } from '../../gateway/shared/timeouts-and-sizes.ts';

/** Tuning that tests need and no configuration can set, for `startGateway`. */
export interface Tuning {
  /** The error of the process's clock. */
  readonly clockSkewMs?: number;
  /** The further error that each `leapClock` adds. */
  readonly clockLeapMs?: number;
  /** Other lengths of the windows: short ones let a test cross their boundaries. */
  readonly windowsMs?: Partial<WindowsMs>;
  /** Other bounds: short timeouts let a test outlast them. */
  readonly bounds?: Partial<Bounds>;
  /** A hosts file. Each line is an address and its names; an address without names is for every name. */
  readonly hostsFile?: string;
}

/**
 * Never gives up on a store that is slow because the machine is busy. Tests that count the admitted requests of several
 * processes need this: a process that decides alone after `bounds.storeDeadlineMs` is correct, but makes the count
 * wrong.
 */
export const patientStore = {
  storeDeadlineMs: 20_000,
  storeSilenceMaxMs: 20_000,
  storeStartTimeoutMs: 20_000,
  storeConnectTimeoutMs: 20_000,
  storePatientDeadlineMs: 20_000,
  directoryLookUpDeadlineMs: 20_000,
  usageCallTimeoutMs: 20_000,
  // A response of the admin API may wait for several calls.
  readingCallTimeoutMs: 20_000,
  adminResponseTimeoutMs: 60_000,
  readingStuckMs: 60_000,
} as const satisfies Tuning['bounds'];

/** The same for a whole gateway, which also never treats a late target as silent. */
export const patientGateway = {
  ...patientStore,
  healthTimeoutMs: 20_000,
} as const satisfies Tuning['bounds'];

/**
 * For tests in which Redis fails or is slow. The deadlines are far above the defaults, so that a pause of the machine
 * is no outage.
 */
export const steadyStore = {
  ...patientStore,
  storeDeadlineMs: 2_000,
  storeSilenceMaxMs: 5_000,
  storeConnectTimeoutMs: 5_000,
  storePatientDeadlineMs: 5_000,
  directoryLookUpDeadlineMs: 2_000,
  usageCallTimeoutMs: 5_000,
} as const satisfies Tuning['bounds'];

/** For tests of forwarding. A busy machine does not look like a hanging target or like a client that has left. */
export const patientForwarding = {
  connectTimeoutMs: 60_000,
  upstreamIdleTimeoutMs: 60_000,
  healthTimeoutMs: 30_000,
  lingerTimeoutMs: 20_000,
} as const satisfies Tuning['bounds'];
