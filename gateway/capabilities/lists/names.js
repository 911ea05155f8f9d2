// biome-ignore-all format: each entry has a line of its own, which goes with its capability
import { guardChartMarks, guardWebhookTypes } from '../guard/event-names.js';
import { webhooksPaths } from '../webhooks/words/page-paths.js';

/** The types of webhooks that capabilities send. */
export const capabilityWebhookTypes = /** @type {const} */ ([
  ...guardWebhookTypes,
]);

/** The texts of marks in charts, by the kind of event. */
export const capabilityChartMarks = {
  ...guardChartMarks,
};

/** The paths of pages of operators, by the name of the page. */
export const capabilityPagePaths = {
  ...webhooksPaths,
};
