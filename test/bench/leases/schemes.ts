import type { Scheme } from './lease-client.ts';

/** The number of processes, and the number of units that one call takes. */
export const processes = 8;
const size = 10;

const base: Scheme = { size, guard: 0, kept: 'window', graceMs: 0, heldMs: 0 };
const guard = processes * size;

/** The compared schemes. `gateway` is the gateway's own limiter; all other schemes use the prototype's script. */
export const schemes = {
  gateway: 'gateway',
  'one call per turn': { ...base, size: 0 },
  'leases, returned after the turn': { ...base, kept: 'turn' },
  'leases, kept': base,
  'leases, kept, not below 80 units': { ...base, guard },
  'leases for 100 ms, others wait': { ...base, guard, kept: 100, graceMs: 50 },
  'one call per 20 ms': { ...base, size: 0, heldMs: 20 },
} as const satisfies Record<string, Scheme | 'gateway'>;

export type SchemeName = keyof typeof schemes;
