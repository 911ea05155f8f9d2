import * as z from 'zod';
import type { Exemption } from '../../capabilities/interfaces/words.ts';
import { exemptions as listed } from '../../capabilities/lists/words.js';
import type { Grant } from '../model.ts';
import { expects } from './schema-parts.ts';

/** The exemptions that a grant can give a key. */
export const exemptions: readonly Exemption[] = listed;

type ExemptionMember = (typeof listed)[number]['member'];

/** The schemas of the members of a grant that state exemptions. @param about makes the description of a member */
export function exemptionShape(about: (exemption: Exemption) => string) {
  const shape = exemptions.map((one) => [one.member, exemption().optional().describe(about(one))]);
  return Object.fromEntries(shape) as Record<ExemptionMember, z.ZodOptional<ReturnType<typeof exemption>>>;
}

function exemption() {
  return z.literal(true, expects('true, or absent'));
}

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
