// biome-ignore-all format: each entry has a line of its own, which goes with its capability
import { guardProposal } from '../guard/page/guard-proposal.js';
import { guardStates } from '../guard/page/guard-states.js';
import { linkActions } from '../holder/links/page/link-actions.js';
import { linkNotes } from '../holder/links/page/link-notes.js';
import { creditNotes } from '../makegood/page/credit-notes.js';
import { WhatIf } from '../simulate/page/what-if.js';
import { webhooksPages } from '../webhooks/page/pages.js';

/** @import { KeyNotes, PlanNotes, PlanSection, ProposeMember } from '../interfaces/pages.ts' */

/** @import { Action } from '../../admin/pages/browser/actions.js' */

/** The pages of capabilities. `words.js` has the path of each page. */
export const capabilityPages = {
  ...webhooksPages,
};

/** What capabilities show above the list of plans. @type {readonly PlanNotes[]} */
export const planNotes = [
  guardStates,
];

/** The sections of capabilities below a plan. @type {readonly PlanSection[]} */
export const planSections = [
  WhatIf,
];

/** What capabilities show below the windows of a key. @type {readonly KeyNotes[]} */
export const keyNotes = [
  creditNotes,
  linkNotes,
];

/** The actions of capabilities on a key, by name. @type {Readonly<Record<string, Action>>} */
export const keyActions = {
  ...linkActions,
};

/** The members of a plan that capabilities propose with a simulation. @type {readonly ProposeMember[]} */
export const proposals = [
  guardProposal,
];
