// biome-ignore-all format: each entry has a line of its own, which goes with its capability
import { brownoutExemption, brownoutNotes, brownoutRefusals } from '../brownouts/words.js';
import { guardChartMarks, guardWebhookTypes } from '../guard/event-names.js';
import { creditUsageNote } from '../makegood/words.js';
import { webhooksPaths } from '../webhooks/words.js';

/** @import { DeprecationNotes } from '../interfaces/words.ts' */

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

/** What capabilities add to the deprecation of an operation. @type {readonly DeprecationNotes[]} */
export const deprecationNotes = [
  brownoutNotes,
];

/** What capabilities say about the units in the usage of a month, as sentences. @type {readonly string[]} */
export const usageNotes = [
  creditUsageNote,
];

/** The exemptions that a grant can give a key. */
export const exemptions = /** @type {const} */ ([
  brownoutExemption,
]);

/** The paths of pages of operators, by the name of the page. */
export const capabilityPagePaths = {
  ...webhooksPaths,
};
