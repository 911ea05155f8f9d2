import type { Exemption } from '../../capabilities/interfaces/words.ts';
import { exemptions as listed } from '../../capabilities/lists/words.js';
import type { Grant } from '../model.ts';

export const exemptions: readonly Exemption[] = listed;

export type ExemptionMember = (typeof listed)[number]['member'];

export function exemptionMembers({
  exemptions: names = [],
}: Pick<Grant, 'exemptions'>): Partial<Record<ExemptionMember, true>> {
  const ofGrant = exemptions.filter(({ name }) => names.includes(name));
  return Object.fromEntries(ofGrant.map(({ member }) => [member, true]));
}

/** Empty without exemptions. */
export function statedExemptions(members: object): Pick<Grant, 'exemptions'> {
  const names = exemptions.filter(({ member }) => Object.hasOwn(members, member)).map(({ name }) => name);
  return names.length === 0 ? {} : { exemptions: names };
}
