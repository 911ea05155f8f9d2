// biome-ignore-all format: each entry has a line of its own, which goes with its capability

import { brownoutsShape, brownoutsShownShape } from '../brownouts/schema.ts';
import { retryPlanWire } from '../guard/operators/wires.ts';
import { guardFiguresShape, guardShape, guardShownShape } from '../guard/schema.ts';
import { linksShape } from '../holder/links/link-shape.ts';
import { linkKeyWire, listLinksWire, unlinkAllWire, unlinkKeyWire } from '../holder/links/wires.ts';
import { holderShape } from '../holder/schema.ts';
import type { ShownSchema } from '../interfaces/configuration.ts';
import { reportLeaksWire } from '../leaks/operators/wires.ts';
import { leaksShape, leaksShown } from '../leaks/schema.ts';
import { creditsShape } from '../makegood/credit-shape.ts';
import { makegoodWire } from '../makegood/wires.ts';
import { otelShape, otelShown } from '../otel/settings/schema.ts';
import { simulateWire } from '../simulate/operators/wires.ts';
import { getDeliveryWire, listDeliveriesWire, sendAgainWire } from '../webhooks/api/wires.ts';
import { receiversShown, webhooksShape } from '../webhooks/settings/schema.ts';

/** The schemas of settings, of members of plans, and of members of deprecated operations. */
export const settingsShapes = {
  ...holderShape,
  ...webhooksShape,
  ...leaksShape,
  ...otelShape,
};
export const planShapes = {
  ...guardShape,
};
export const deprecationShapes = {
  ...brownoutsShape,
};

/** The wires of the routes of capabilities, and functions that make wires with bounds. */
export const capabilityWires = [
  retryPlanWire,
  makegoodWire,
  reportLeaksWire,
  linkKeyWire,
  listLinksWire,
  unlinkKeyWire,
  unlinkAllWire,
  simulateWire,
  listDeliveriesWire,
  getDeliveryWire,
  sendAgainWire,
] as const;

/** The schemas of settings that `/settings` does not show as they are stated (`SettingsPart.shown`). */
export const settingsShownSchemas = {
  ...leaksShown,
  ...receiversShown,
  ...otelShown,
} satisfies Readonly<Record<string, ShownSchema>>;

/** The schemas of members in responses: of a plan, of its figures, of a key, of a deprecation. */
export const planShownShapes = {
  ...guardShownShape,
};
export const planFiguresShapes = {
  ...guardFiguresShape,
};
export const keyShownShapes = {
  ...creditsShape,
  ...linksShape,
};
export const deprecationShownShapes = {
  ...brownoutsShownShape,
};
