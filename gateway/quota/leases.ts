export interface Concurrency {
  /** Requests of the key that all processes may serve at the same time. */
  readonly max: number;
  /** The name of this process: letters, digits, `-` and `_`. */
  readonly process: string;
  /** Requests of the key that this process serves now, before the call. */
  readonly active: number;
  /** Counted from the call. A later call may renew or end the lease. */
  readonly leaseMs: number;
}

/** The requests of a key that one process serves. A process that is killed cannot end its lease, so each lease expires. */
export interface Lease {
  readonly process: string;
  readonly requests: number;
  /** Epoch ms on the store's clock. */
  readonly untilMs: number;
}

/** Requests that may begin now; 0 or less when the key has reached its limit. */
export function freeSlots(
  leases: readonly Lease[],
  { max, process, active }: Concurrency,
  nowMs: number,
): number {
  const others = leases.filter((lease) => lease.process !== process && lease.untilMs > nowMs);
  return others.reduce((free, { requests }) => free - requests, max - active);
}

/** Without expired leases, and with a new lease of the calling process. */
export function renewLease(
  leases: readonly Lease[],
  { process, active, leaseMs }: Concurrency,
  admitted: number,
  nowMs: number,
): readonly Lease[] {
  const others = leases.filter((lease) => lease.process !== process && lease.untilMs > nowMs);
  const requests = active + admitted;
  return requests === 0 ? others : [...others, { process, requests, untilMs: nowMs + leaseMs }];
}
