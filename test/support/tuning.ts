import type { WindowsMs } from '../../gateway/shared/calendar-windows.ts';
import type { Bounds } from '../../gateway/shared/timeouts-and-sizes.ts';

/** What tests need to set and no configuration does; `startGateway` takes it. */
export interface Tuning {
  /** Added to the process's clock. */
  readonly clockSkewMs?: number;
  /** Added once more by each `leapClock`. */
  readonly clockLeapMs?: number;
  /** Other lengths of the windows: short ones let a test cross their boundaries. */
  readonly windowsMs?: Partial<WindowsMs>;
  /** Other bounds: short timeouts let a test outlast them. */
  readonly bounds?: Partial<Bounds>;
  /** A hosts file: an address a line, with the names that it is for, or without any for every name. */
  readonly hostsFile?: string;
}

/**
 * Never gives up on a store that is slow because the machine is busy. For tests that count what several processes admit
 * together: a process that decided alone after `bounds.storeDeadlineMs` would be right, and the count wrong.
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

/** The same of a whole gateway: nor is a target that answers late silent. */
export const patientGateway = {
  ...patientStore,
  healthTimeoutMs: 20_000,
} as const satisfies Tuning['bounds'];

/** For tests in which Redis fails or is slow: far beyond the defaults, so that a machine that pauses is no outage. */
export const steadyStore = {
  ...patientStore,
  storeDeadlineMs: 2_000,
  storeSilenceMaxMs: 5_000,
  storeConnectTimeoutMs: 5_000,
  storePatientDeadlineMs: 5_000,
  directoryLookUpDeadlineMs: 2_000,
  usageCallTimeoutMs: 5_000,
} as const satisfies Tuning['bounds'];

/** For tests of what is forwarded: a busy machine is no target that hangs, and no client that is gone. */
export const patientForwarding = {
  connectTimeoutMs: 60_000,
  upstreamIdleTimeoutMs: 60_000,
  healthTimeoutMs: 30_000,
  lingerTimeoutMs: 20_000,
} as const satisfies Tuning['bounds'];
