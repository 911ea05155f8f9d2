import * as z from 'zod';
import { defineWire, ifMatchHeader, keyIdParameter } from '../../../shared/http/wire.ts';
import { agePattern, parseDuration } from '../../../shared/schema/dates-and-durations.ts';
import { date, digestOf, fields, text } from '../../../shared/schema/schema-parts.ts';
import { definitionAnswer, issuedAnswer } from './definitions.ts';

export const issueSecretBody = fields('an object with overlap, expiresAt and sha256', {
  overlap: text('a duration such as 24h, or 0s', agePattern)
    .transform(parseDuration)
    .optional()
    .describe('The longest time for which the older secrets stay valid.'),
  expiresAt: date.optional().describe('The time when the new secret expires.'),
  sha256: digestOf('secret')
    .optional()
    .describe(
      'The SHA-256 digest of a new random secret that the client has made and stored. The gateway then issues no secret. If the secret begins with `tg_`, it must have the form that Tollgate issues. A repeated request changes nothing.',
    ),
});

export const issueSecretWire = defineWire({
  method: 'POST',
  path: '/keys/{id}/secrets',
  operationId: 'issueSecret',
  tag: 'Keys',
  summary: 'Issue another secret of a key',
  description:
    'With `sha256`, the response is 200 and has no secret. With `overlap`, the older secrets expire after this time, or at once with `0s`. A secret that would expire sooner keeps its expiry. If the key has 16 secrets, the new secret replaces the secret that expired first; if none has expired or expires at once, the response is 409.',
  params: { id: keyIdParameter },
  headers: { 'If-Match': ifMatchHeader },
  body: issueSecretBody,
  answers: { 200: definitionAnswer, 201: issuedAnswer },
});

export const removeSecretWire = defineWire({
  method: 'DELETE',
  path: '/keys/{id}/secrets/{digest}',
  operationId: 'removeSecret',
  tag: 'Keys',
  summary: 'Remove a secret of a key',
  description:
    'While Redis replies, every process refuses the next request with the secret. If the digests of several secrets begin with these digits, the response is 409.',
  params: {
    id: keyIdParameter,
    digest: z
      .string()
      .regex(/^[0-9A-Fa-f]{8,64}$/)
      .describe(`The first 8 or more hex digits of the secret's SHA-256 digest.`),
  },
  headers: { 'If-Match': ifMatchHeader },
  answers: { 200: definitionAnswer },
});
