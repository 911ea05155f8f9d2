import * as z from 'zod';
import { grantedLimits } from '../../../keys/limits/limits-schema.ts';
import { components, count } from '../../../keys/response-parts.ts';
import { type Answer, defineWire, keyIdParameter } from '../../../shared/http/wire.ts';
import { exemptionShape } from '../../../shared/schema/exemption-shape.ts';
import { exemptions, statedExemptions } from '../../../shared/schema/exemptions.ts';
import { date, fields, text } from '../../../shared/schema/schema-parts.ts';
import { banAndGrantShape } from './keys.ts';

const exempting = exemptions.map(({ member }) => `\`${member}\``).join(' or ');

export const grantBody = fields('an object with limits and untilAt', {
  limits: grantedLimits
    .optional()
    .describe(
      exempting === ''
        ? 'The limits of the grant.'
        : `The limits of the grant. They may be absent only with ${exempting}.`,
    ),
  ...exemptionShape(({ allows }) => `The key may ${allows}.`),
  fromAt: date.optional().describe('The beginning of the grant; by default, and for a past time, at once.'),
  untilAt: date.describe('The end of the grant.'),
}).refine(
  (grant) => grant.limits !== undefined || statedExemptions(grant).exemptions !== undefined,
  exempting === '' ? 'must have `limits`' : `must have \`limits\`, ${exempting} or both`,
);

/** The response to a change of a ban or grant: the key's ban, grant and strikes after the change. */
export const whatHolds = z
  .object({
    id: z.string(),
    wasBanned: z
      .boolean()
      .optional()
      .describe('Whether the key was banned. Present only in responses to `/unban`.'),
    isUnchanged: z
      .boolean()
      .optional()
      .describe('Present if the key was as requested already. Then nothing changed.'),
    strikes: count.describe('Refusals that count towards the next ban.'),
    ...banAndGrantShape,
  })
  .register(components, { id: 'WhatHolds' });

export const whatHoldsAnswer = {
  description: 'The present grant and ban of the key.',
  schema: whatHolds,
} as const satisfies Answer;

export const unbanKeyWire = defineWire({
  method: 'POST',
  path: '/keys/{id}/unban',
  operationId: 'unbanKey',
  tag: 'Keys',
  summary: 'Lift the ban of a key',
  description:
    'While Redis replies, the ban ends on every process within about a second. Earlier refusals no longer count towards a ban, including refusals that a process has not reported yet; also for a key without a ban.',
  params: { id: keyIdParameter },
  answers: { 200: whatHoldsAnswer },
});

export const banKeyWire = defineWire({
  method: 'POST',
  path: '/keys/{id}/ban',
  operationId: 'banKey',
  tag: 'Keys',
  summary: 'Ban a key',
  description:
    'While Redis replies, every process refuses API requests of the key with 429 until `untilAt`, at most 400 days ahead. The ban may be longer than `bans.max`, and does not count towards the length of later bans. If the key has a ban that ends later, the response is 409.',
  params: { id: keyIdParameter },
  body: fields('an object with untilAt', {
    untilAt: date.describe('The end of the ban.'),
    reason: text('up to 200 printable characters', /^[^\p{Cc}]{1,200}$/u)
      .optional()
      .describe(
        'Why the key is banned. Operators see the reason. The client sees it only if `bans.showReason` is set.',
      ),
  }),
  answers: { 200: whatHoldsAnswer },
});

export const grantKeyWire = defineWire({
  method: 'POST',
  path: '/keys/{id}/grant',
  operationId: 'grantKey',
  tag: 'Keys',
  summary: 'Give a key other limits for a while',
  description:
    'A grant replaces the limits of the named windows from `fromAt` until `untilAt`, at most 400 days ahead. While Redis replies, every process follows within about a second. A new grant replaces the present grant. If only one of them begins in the future, the response is 409. Used requests stay counted. A grant cannot name a window in which the key has no limit, or a group that the key does not have.',
  params: { id: keyIdParameter },
  body: grantBody,
  answers: { 200: whatHoldsAnswer },
});

export const ungrantKeyWire = defineWire({
  method: 'DELETE',
  path: '/keys/{id}/grant',
  operationId: 'ungrantKey',
  tag: 'Keys',
  summary: 'End the grant of a key',
  description:
    'The limits that the key has without the grant apply again. If the key has no grant, nothing changes.',
  params: { id: keyIdParameter },
  answers: { 200: whatHoldsAnswer },
});
