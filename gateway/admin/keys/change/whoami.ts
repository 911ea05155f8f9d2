import * as z from 'zod';
import { compileKey } from '../../../keys/compile-key.ts';
import { type DirectoryKey, expiryOf } from '../../../keys/directory/directory-key.ts';
import { plansInForce } from '../../../keys/key-table.ts';
import type { Key } from '../../../shared/model.ts';
import { isoOfEnd } from '../../../shared/schema/dates-and-durations.ts';
import { digestOf, fields } from '../../../shared/schema/schema-parts.ts';
import { jsonResponse } from '../../admin-response.ts';
import { instant, positive, words } from '../../api/response-parts.ts';
import { defineRoute, type Route } from '../../api/route.ts';
import { defineWire } from '../../api/wire.ts';
import { placeOfKey } from '../key-sources.ts';
import { leakShown, leakView } from '../leaks/leak-view.ts';
import { type KeyChangeSources, storeFailed } from './change-sources.ts';

export const owner = z.discriminatedUnion('known', [
  z.object({ known: z.literal(false).describe('No key has the secret.') }),
  z.object({
    known: z.literal(true),
    id: z.string(),
    plan: z.string(),
    source: words('file', 'directory'),
    file: z.string().optional(),
    line: positive.optional(),
    expiresAt: instant.optional(),
    isExpired: z.boolean(),
    isDisabled: z.boolean().describe('Whether the key is revoked.'),
    leak: leakShown.optional(),
    refusedFor: words('id_in_configuration', 'no_plan')
      .optional()
      .describe(
        'The reason why a directory key that is neither revoked nor expired is refused: the configuration has another key with this id, or gives the key no limits. Absent for other keys.',
      ),
  }),
]);

export type Owner = z.output<typeof owner>;
export type KnownOwner = Extract<Owner, { known: true }>;

export const whoamiBody = fields('an object with sha256', { sha256: digestOf('secret') });

export const findSecretWire = defineWire({
  method: 'POST',
  path: '/whoami',
  operationId: 'findSecret',
  tag: 'Keys',
  summary: 'The key of a secret',
  description:
    'Finds the key of a secret by its digest, for example after the report of a leak. The secret itself is not sent. If a key of the configuration and a key of the key directory both have the secret, the response has the key of the configuration.',
  body: whoamiBody,
  answers: { 200: { description: 'The key, or that no key has the secret.', schema: owner } },
});

/**
 * `POST /whoami` finds the key of a secret by the secret's digest. The configuration takes precedence over the
 * directory, as for requests with a secret.
 */
export function whoamiRoute({
  settings,
  directory,
  leakOf,
  nowMs,
}: Pick<KeyChangeSources, 'settings' | 'directory' | 'leakOf' | 'nowMs'>): Route {
  return defineRoute({
    ...findSecretWire,
    needs: 'read',
    async respond({ body: { sha256 } }) {
      const written = settings().keys.find(sha256);
      if (written !== undefined) {
        const { id } = written.key;
        const place = { source: 'file', ...placeOfKey(settings(), id) } as const;
        const leak = leakOf?.(sha256);
        const { expiresMs } = written.secret;
        const endMs = leak?.ended ? Math.min(expiresMs, leak.atMs) : expiresMs;
        return jsonResponse(ownerOf(written.key, endMs, { ...place, leak: leak && leakView(leak) }));
      }
      const found = await directory?.find(sha256);
      switch (found?.kind) {
        case 'away':
          return storeFailed({ ...found, mayHaveRun: false }).response;
        case 'found': {
          const { secrets, pastSecrets = [] } = found.key;
          const present = secrets.find(({ digest }) => digest === sha256);
          const secret = present ?? pastSecrets.find(({ digest }) => digest === sha256);
          // A removed secret counts as expired, and has no time of expiry.
          const expiresMs = present === undefined ? Number.NEGATIVE_INFINITY : expiryOf(present);
          const refusedFor = refusalOf(found.key);
          const leak = secret?.leak && leakView(secret.leak);
          return jsonResponse(ownerOf(found.key, expiresMs, { source: 'directory', refusedFor, leak }));
        }
        default:
          return jsonResponse({ known: false } satisfies Owner);
      }
    },
  });

  function refusalOf(key: DirectoryKey): KnownOwner['refusedFor'] {
    if (settings().keys.has(key.id)) return 'id_in_configuration';
    return compileKey(key, plansInForce(settings())) === undefined ? 'no_plan' : undefined;
  }

  function ownerOf(
    { id, plan, disabled }: Pick<Key, 'id' | 'plan' | 'disabled'>,
    expiresMs: number,
    from: Pick<KnownOwner, 'source' | 'file' | 'line' | 'refusedFor' | 'leak'>,
  ): Owner {
    const expiresAt = isoOfEnd(expiresMs);
    const isExpired = expiresMs <= nowMs();
    return { known: true, id, plan, ...from, expiresAt, isExpired, isDisabled: disabled };
  }
}
