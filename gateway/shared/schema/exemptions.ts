import type { Exemption } from '../../capabilities/interfaces/words.ts';
import { exemptions as listed } from '../../capabilities/lists/words.js';
import type { Grant } from '../model.ts';

/** The exemptions that a grant can give a key. */
export const exemptions: readonly Exemption[] = listed;

export type ExemptionMember = (typeof listed)[number]['member'];

/** The members of a grant that state its exemptions. */
export function exemptionMembers({
  exemptions: names = [],
}: Pick<Grant, 'exemptions'>): Partial<Record<ExemptionMember, true>> {
  const ofGrant = exemptions.filter(({ name }) => names.includes(name));
  return Object.fromEntries(ofGrant.map(({ member }) => [member, true]));
}

/** Returns the exemptions that the members of a grant state; an empty object without exemptions. */
export function statedExemptions(members: object): Pick<Grant, 'exemptions'> {
  const names = exemptions.filter(({ member }) => Object.hasOwn(members, member)).map(({ name }) => name);
  return names.length === 0 ? {} : { exemptions: names };
}
