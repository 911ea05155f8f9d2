// biome-ignore-all format: each entry has a line of its own, which goes with its capability

import { brownoutsShape, brownoutsShownShape } from '../brownouts/schema.ts';
import { retryPlanWire } from '../guard/operators/wires.ts';
import { guardFiguresShape, guardShape, guardShownShape } from '../guard/schema.ts';
import { holderShape } from '../holder/schema.ts';
import type { SettingsFile } from '../interfaces/configuration.ts';
import { githubKeysFile } from '../leaks/github/keys-file.ts';
import { reportLeaksWire } from '../leaks/operators/wires.ts';
import { leaksShape, leaksShownShape } from '../leaks/schema.ts';
import { creditsShape } from '../makegood/credit-shape.ts';
import { makegoodWire } from '../makegood/wires.ts';
import { simulateWire } from '../simulate/operators/wires.ts';

/** The schemas of settings, of members of plans, and of members of deprecated operations. */
export const settingsShapes = {
  ...holderShape,
  ...leaksShape,
};
export const settingsShownShapes = {
  ...leaksShownShape,
};

/** The files that settings name. */
export const settingsFiles: readonly SettingsFile[] = [
  githubKeysFile,
];

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
  reportLeaksWire,
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
