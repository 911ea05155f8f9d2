// biome-ignore-all format: each entry has a line of its own, which goes with its capability
import { guardProposal } from '../guard/page/guard-proposal.js';
import { guardStates } from '../guard/page/guard-states.js';

/** @import { PlanNotes, ProposeMember } from '../interfaces/pages.ts' */

/**
 * What capabilities show above the list of plans.
 *
 * @type {readonly PlanNotes[]}
 */
export const planNotes = [
  guardStates,
];

/**
 * The members of a plan that capabilities propose with a simulation.
 *
 * @type {readonly ProposeMember[]}
 */
export const proposals = [
  guardProposal,
];
