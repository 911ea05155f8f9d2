// biome-ignore-all format: each entry has a line of its own, which goes with its capability

import { brownoutsShape, brownoutsShownShape } from '../brownouts/schema.ts';
import { retryPlanWire } from '../guard/operators/wires.ts';
import { guardFiguresShape, guardShape, guardShownShape } from '../guard/schema.ts';
import { holderShape } from '../holder/schema.ts';
import { creditsShape } from '../makegood/credit-shape.ts';
import { makegoodWire } from '../makegood/wires.ts';
import { simulateWire } from '../simulate/operators/wires.ts';

/** The schemas of settings, of members of plans, and of members of deprecated operations. */
export const settingsShapes = {
  ...holderShape,
};
export const planShapes = {
  ...guardShape,
};
export const deprecationShapes = {
  ...brownoutsShape,
};

/** The wires of the routes of capabilities. */
export const capabilityWires = [
  retryPlanWire,
  makegoodWire,
  simulateWire,
] as const;

/** The schemas of members in responses: of a plan, of its figures, of a key, of a deprecation. */
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
