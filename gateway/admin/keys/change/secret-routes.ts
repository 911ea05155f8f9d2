import * as z from 'zod';
import { withNewSecret, withSecrets } from '../../../keys/directory/change-secrets.ts';
import type { DirectoryKey } from '../../../keys/directory/directory-key.ts';
import { date } from '../../../keys/key-schema.ts';
import { agePattern, isoOf, isoOfEnd, parseDuration } from '../../../shared/schema/dates-and-durations.ts';
import { fields, text } from '../../../shared/schema/schema-parts.ts';
import { digestSecret, digestStart, issueSecret } from '../../../shared/secrets.ts';
import { defineRoute, type Route } from '../../api/route.ts';
import { defineWire, ifMatchHeader, keyIdParameter } from '../../api/wire.ts';
import { type KeyChangeSources, type Refused, refused } from './change-sources.ts';
import { definitionAnswer, definitionResponse, issuedAnswer } from './definition.ts';
import { type Edit, editKey } from './edit-key.ts';

export const issueSecretBody = fields('an object with overlap and expiresAt', {
  overlap: text('a duration such as 24h, or 0s', agePattern)
    .transform(parseDuration)
    .optional()
    .describe('The time for which the older secrets stay valid.'),
  expiresAt: date.optional().describe('The time when the new secret expires.'),
});

/** The beginning of a digest in a request. Responses show 8 digits, so a request needs at least 8. */
const digestPattern = /^[0-9a-f]{8,64}$/;

export const issueSecretWire = defineWire({
  method: 'POST',
  path: '/keys/{id}/secrets',
  operationId: 'issueSecret',
  tag: 'Keys',
  summary: 'Issue another secret of a key',
  description:
    'Only this response contains the secret. With `overlap`, the older secrets expire after this time, or at once with `0s`. A secret that would expire sooner keeps its expiry. A key has at most 16 secrets. If the key has 16 secrets, the new secret replaces the secret that expired first.',
  params: { id: keyIdParameter },
  headers: { 'If-Match': ifMatchHeader },
  body: issueSecretBody,
  answers: { 201: issuedAnswer },
});

export const removeSecretWire = defineWire({
  method: 'DELETE',
  path: '/keys/{id}/secrets/{digest}',
  operationId: 'removeSecret',
  tag: 'Keys',
  summary: 'Remove a secret of a key',
  description:
    'The next request with the secret gets 401 on every process. If the digests of several secrets begin with these digits, the response is 409.',
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

/**
 * The routes that issue and remove secrets of a directory key. A request for a new secret can also set when the older
 * secrets expire.
 */
export function secretRoutes(sources: KeyChangeSources): readonly Route[] {
  return [
    defineRoute({
      ...issueSecretWire,
      needs: 'write',
      async respond({ body, ...request }) {
        const secret = issueSecret();
        const edited = await editKey(sources, request, (key) => issue(sources, key, secret, body));
        return edited.kind === 'refused' ? edited.response : definitionResponse(edited.key, 201, { secret });
      },
    }),
    defineRoute({
      ...removeSecretWire,
      needs: 'write',
      async respond(request) {
        const { digest = '' } = request.params;
        const edited = await editKey(sources, request, (key) => removal(key, digest.toLowerCase()));
        return edited.kind === 'refused' ? edited.response : definitionResponse(edited.key);
      },
    }),
  ];
}

function issue(
  { nowMs, bounds }: Pick<KeyChangeSources, 'nowMs' | 'bounds'>,
  key: DirectoryKey,
  secret: string,
  { overlap: overlapMs, expiresAt }: z.output<typeof issueSecretBody>,
): Edit | Refused {
  const createdMs = nowMs();
  if (expiresAt !== undefined && expiresAt <= createdMs) {
    return refused('invalid_request', 'The member `expiresAt` must be in the future.');
  }
  const olderEndMs = overlapMs === undefined ? Number.POSITIVE_INFINITY : createdMs + overlapMs;
  const { directorySecretsPerKeyMax: secretsMax } = bounds;
  const issued = { digest: digestSecret(secret), createdMs, expiresMs: expiresAt };
  const to = withNewSecret(key, issued, { endOf: () => olderEndMs, secretsMax });
  if (to === undefined) {
    return refused('conflict', `${key.id} has ${secretsMax} secrets that are valid: remove one first.`);
  }
  const after = {
    secret: digestStart(issued.digest),
    expiresAt: isoOf(expiresAt),
    othersEndAt: isoOfEnd(olderEndMs),
  };
  return {
    kind: 'edit',
    to,
    change: { action: overlapMs === undefined ? 'secret' : 'rotate', after },
  };
}

function removal(key: DirectoryKey, start: string): Edit | Refused {
  if (!digestPattern.test(start)) {
    return refused('invalid_request', 'The digest in the path must be 8 to 64 hex digits.');
  }
  const [found, ...others] = key.secrets.filter(({ digest }) => digest.startsWith(start));
  if (found === undefined) return refused('not_found', `${key.id} has no secret with this digest.`);
  if (others.length > 0) {
    return refused(
      'conflict',
      `Several secrets of ${key.id} have a digest that begins with these digits: send more digits.`,
    );
  }
  return {
    kind: 'edit',
    to: withSecrets(
      key,
      key.secrets.filter((secret) => secret !== found),
    ),
    change: { action: 'secret', before: { secret: digestStart(found.digest) } },
  };
}
