// biome-ignore-all format: each entry has a line of its own, which goes with its capability
import { brownoutExemption, brownoutRefusals } from '../brownouts/words.js';
import { guardChartMarks, guardWebhookTypes } from '../guard/event-names.js';
import { webhooksPaths } from '../webhooks/words.js';

/** The types of webhooks that capabilities send. */
export const capabilityWebhookTypes = /** @type {const} */ ([
  ...guardWebhookTypes,
]);

/** The texts of marks in charts, by the kind of event. */
export const capabilityChartMarks = {
  ...guardChartMarks,
};

/** The refusals of capabilities that the usage record counts by name. */
export const countedRefusals = /** @type {const} */ ([
  brownoutRefusals,
]);

/** The exemptions that a grant can give a key. */
export const exemptions = /** @type {const} */ ([
  brownoutExemption,
]);

/** The paths of pages of operators, by the name of the page. */
export const capabilityPagePaths = {
  ...webhooksPaths,
};
