import * as z from 'zod';
import type { Exemption } from '../../capabilities/interfaces/words.ts';
import { type ExemptionMember, exemptions } from './exemptions.ts';
import { expects } from './schema-parts.ts';

export function exemptionShape(about: (exemption: Exemption) => string) {
  const shape = exemptions.map((one) => [one.member, exemption().optional().describe(about(one))]);
  return Object.fromEntries(shape) as Record<ExemptionMember, z.ZodOptional<ReturnType<typeof exemption>>>;
}

function exemption() {
  return z.literal(true, expects('true, or absent'));
}
