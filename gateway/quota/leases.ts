/** The concurrency limit of a key, and the number of the key's requests that this process serves. */
export interface Concurrency {
  /** The number of requests of the key that all processes may serve at the same time. */
  readonly max: number;
  /** The name of this process: letters, digits, `-` and `_`. */
  readonly process: string;
  /** The number of the key's requests that this process serves now, without the requests of the call. */
  readonly active: number;
  /** The duration of the lease, counted from the call. A later call may renew or end the lease. */
  readonly leaseMs: number;
}

/** The number of a key's requests that one process serves. A process that is killed cannot end its lease, so each lease expires. */
export interface Lease {
  readonly process: string;
  readonly requests: number;
  /** Epoch ms on the store's clock. */
  readonly untilMs: number;
}

/** The number of requests that may begin now; 0 or less when the key has reached its limit. */
export function freeSlots(
  leases: readonly Lease[],
  { max, process, active }: Concurrency,
  nowMs: number,
): number {
  const others = leases.filter((lease) => lease.process !== process && lease.untilMs > nowMs);
  return others.reduce((free, { requests }) => free - requests, max - active);
}

/** The leases after a call: expired leases are removed, and the lease of the calling process is renewed. */
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
