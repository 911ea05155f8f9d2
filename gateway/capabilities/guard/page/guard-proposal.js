/** @import { ProposeMember } from '../../interfaces/pages.ts' */

/** The guard that the simulation of an edit proposes. @type {ProposeMember} */
export function guardProposal({ name }, simulation) {
  const line = simulation?.guards[name];
  if (line === undefined) return undefined;
  const text =
    'Change the limits of the plan, and add this line. If the new limits refuse too many requests of several keys, every gateway returns to the present limits within 5 seconds.';
  return { name: 'guard', line, label: 'Guard it', text };
}
