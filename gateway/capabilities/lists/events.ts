// biome-ignore-all format: each entry has a line of its own, which goes with its capability
import { guardChanges, guardFaults, guardKinds } from '../guard/events.ts';
import { holderChanges } from '../holder/links/events.ts';
import { makegoodChanges } from '../makegood/events.ts';

/** The kinds of events that capabilities report. */
export const capabilityKinds = {
  ...guardKinds,
};

/** The changes of limits that capabilities make, by the action in the record of changes. */
export const limitsChanges = {
  ...guardChanges,
};

/** The changes of keys that capabilities make, by the action in the record of changes. */
export const keyChanges = {
  ...makegoodChanges,
  ...holderChanges,
};

/** The codes of faults that capabilities find, the most serious first. */
export const capabilityFaults: readonly string[] = [
  ...guardFaults,
];
