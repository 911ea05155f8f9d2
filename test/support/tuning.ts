import type { WindowsMs } from '../../gateway/shared/calendar-windows.ts';
import type { Bounds } from '../../gateway/shared/timeouts-and-sizes.ts';

/** Values that a test can give to the gateway, but that no configuration can set. `startGateway` uses them. */
export interface Tuning {
  /** The error of the process's clock. */
  readonly clockSkewMs?: number;
  /** Each call of `leapClock` adds this time to the clock's error. */
  readonly clockLeapMs?: number;
  /** The lengths of windows. A test can cross the boundaries of short windows. */
  readonly windowsMs?: Partial<WindowsMs>;
  /** Timeouts and sizes that replace the defaults. A test can wait for a short timeout. */
  readonly bounds?: Partial<Bounds>;
  /**
   * A hosts file. Each line has an address and the names that resolve to it. If a line has no names, every name resolves to the address of
   * the line.
   */
  readonly hostsFile?: string;
}

/**
 * Long deadlines, so that the store does not count as unavailable on a busy machine. Tests that count the requests of several processes
 * need these deadlines. After `storeDeadlineMs`, a process decides without Redis, and all processes together may admit more requests than
 * the limit allows.
 */
export const patientStore = {
  storeDeadlineMs: 20_000,
  storeSilenceMaxMs: 20_000,
  storeStartTimeoutMs: 20_000,
  storeConnectTimeoutMs: 20_000,
  storePatientDeadlineMs: 20_000,
  healthExchangeDeadlineMs: 20_000,
  // A claim must last longer than a call to the store and an attempt.
  webhookClaimMs: 60_000,
  directoryLookUpDeadlineMs: 20_000,
  usageCallTimeoutMs: 20_000,
  // A response of the admin API may wait for several calls to Redis.
  readingCallTimeoutMs: 20_000,
  adminResponseTimeoutMs: 60_000,
  readingStuckMs: 60_000,
  // A connection is silent while its request waits for such a response, and closes after this time.
  writeTimeoutMs: 120_000,
} as const satisfies Tuning['bounds'];

/**
 * The deadlines of `patientStore`, and further patient timeouts. A slow target does not count as unavailable, and a slow client of a busy
 * machine is not disconnected before it sends its request.
 */
export const patientGateway = {
  ...patientStore,
  headersTimeoutMs: 60_000,
  requestTimeoutMs: 120_000,
  tlsHandshakeTimeoutMs: 60_000,
  writeTimeoutMs: 120_000,
  healthTimeoutMs: 20_000,
} as const satisfies Tuning['bounds'];

/**
 * Deadlines for tests in which Redis fails or is slow. These deadlines are far above the defaults, so that a pause of the machine does not
 * count as an outage.
 */
export const steadyStore = {
  ...patientStore,
  storeDeadlineMs: 2_000,
  storeSilenceMaxMs: 5_000,
  storeConnectTimeoutMs: 5_000,
  storePatientDeadlineMs: 5_000,
  healthExchangeDeadlineMs: 5_000,
  directoryLookUpDeadlineMs: 2_000,
  usageCallTimeoutMs: 5_000,
} as const satisfies Tuning['bounds'];

/**
 * Timeouts for tests of forwarding. The timeouts are long, so that a gateway on a busy machine does not consider a target hanging or a
 * client disconnected.
 */
export const patientForwarding = {
  connectTimeoutMs: 60_000,
  upstreamIdleTimeoutMs: 60_000,
  healthTimeoutMs: 30_000,
  lingerTimeoutMs: 20_000,
} as const satisfies Tuning['bounds'];
