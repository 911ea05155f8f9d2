// biome-ignore-all format: each entry has a line of its own, which goes with its capability
import { brownoutsShownShape } from '../brownouts/operation-member.ts';
import { guardChanges, guardFaults, guardKinds } from '../guard/events.ts';
import { guardFiguresShape, guardShownShape } from '../guard/plan-member.ts';
import { guardAdviceShape, guardShareShape } from '../guard/what-if/advice-schema.ts';
import { retryPlanWire } from '../guard/wires.ts';
import { creditsShape } from '../makegood/credit-shape.ts';
import { makegoodChanges } from '../makegood/events.ts';
import { makegoodWire } from '../makegood/wires.ts';

/** The wires of the routes of capabilities. */
export const capabilityWires = [
  retryPlanWire,
  makegoodWire,
] as const;

/** The schemas of members in responses: of a plan, of its figures, of a key, of the deprecation of an operation. */
export const planShownShapes = {
  ...guardShownShape,
};
export const planFiguresShapes = {
  ...guardFiguresShape,
};
export const keyShownShapes = {
  ...creditsShape,
};
export const deprecationShownShapes = {
  ...brownoutsShownShape,
};

/** The schemas of what capabilities add to a simulation: to the figures of a plan, and to the response. */
export const planAdviceShapes = {
  ...guardShareShape,
};
export const adviceShapes = {
  ...guardAdviceShape,
};

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
};

/** The codes of faults that capabilities find, the most serious first. */
export const capabilityFaults: readonly string[] = [
  ...guardFaults,
];
