// biome-ignore-all format: each entry has a line of its own, which goes with its capability
import { guardFiguresShape, guardMember, guardShape, guardShownShape } from '../guard/plan-member.ts';
import { guardAdviceShape, guardShareShape } from '../guard/what-if/advice-schema.ts';
import type { PlanMember } from '../interfaces/configuration.ts';
import { creditsShape } from '../makegood/credit-shape.ts';

/** The members of plans that belong to capabilities. */
export const planMembers: readonly PlanMember[] = [
  guardMember,
];

/** Their schemas in the configuration. */
export const planShapes = {
  ...guardShape,
};

/** Their schemas in responses, and the schemas of figures about a plan. */
export const planShownShapes = {
  ...guardShownShape,
};
export const planFiguresShapes = {
  ...guardFiguresShape,
};

/** The schemas of their members of a key in responses. */
export const keyShownShapes = {
  ...creditsShape,
};

/** The schemas of what capabilities add to a simulation: to the figures of a plan, and to the response. */
export const planAdviceShapes = {
  ...guardShareShape,
};
export const adviceShapes = {
  ...guardAdviceShape,
};
