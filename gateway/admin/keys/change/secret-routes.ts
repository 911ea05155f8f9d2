import type * as z from 'zod';
import { withNewSecret, withSecrets } from '../../../keys/directory/change-secrets.ts';
import { type DirectoryKey, expiryOf } from '../../../keys/directory/directory-key.ts';
import { isoOf, isoOfEnd } from '../../../shared/schema/dates-and-durations.ts';
import { digestSecret, digestStart, issueSecret } from '../../../shared/secrets.ts';
import { defineRoute, type Route } from '../../api/route.ts';
import { type issueSecretBody, issueSecretWire, removeSecretWire } from '../../wires/keys/secrets.ts';
import {
  type ChangeRequest,
  type KeyChangeSources,
  type Refused,
  refused,
  storeFailed,
} from './change-sources.ts';
import { definitionResponse, editedResponse } from './definition.ts';
import { type Edit, editKey } from './edit-key.ts';

/** The beginning of a digest in a request. Responses show 8 digits, so a request needs at least 8. */
const digestPattern = /^[0-9a-f]{8,64}$/;

/** A request for a new secret can also set when the older secrets expire. */
export function secretRoutes(sources: KeyChangeSources): readonly Route[] {
  return [
    defineRoute({
      ...issueSecretWire,
      needs: 'write',
      async respond({ body, ...request }) {
        const { sha256 } = body;
        const other = sha256 && (await ownerOf(sources, sha256, request));
        if (other) return other.response;
        const secret = issueSecret();
        const digest = sha256 ?? digestSecret(secret);
        const edited = await editKey(sources, request, (key) => issue(sources, key, digest, body));
        if (edited.kind === 'refused') return edited.response;
        return sha256 === undefined
          ? definitionResponse(edited.key, 201, { secret })
          : editedResponse(edited);
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

/** Refuses the digest of a secret of another key. */
async function ownerOf(
  { settings, directory }: Pick<KeyChangeSources, 'settings' | 'directory'>,
  sha256: string,
  { params: { id } }: ChangeRequest,
): Promise<Refused | undefined> {
  const inFile = settings().keys.find(sha256);
  const found = await directory?.find(sha256);
  if (found?.kind === 'away') return storeFailed(found);
  const owner = inFile?.key.id ?? (found?.kind === 'found' ? found.key.id : undefined);
  return owner === undefined || owner === id
    ? undefined
    : refused('conflict', 'Another key has this secret.');
}

function issue(
  { nowMs, bounds }: Pick<KeyChangeSources, 'nowMs' | 'bounds'>,
  key: DirectoryKey,
  digest: string,
  { overlap: overlapMs, expiresAt }: z.output<typeof issueSecretBody>,
): Edit | { readonly kind: 'unchanged' } | Refused {
  if (key.secrets.some((secret) => secret.digest === digest)) return { kind: 'unchanged' };
  const createdMs = nowMs();
  if (expiresAt !== undefined && expiresAt <= createdMs) {
    return refused('invalid_request', 'The member `expiresAt` must be in the future.');
  }
  const olderEndMs = overlapMs === undefined ? Number.POSITIVE_INFINITY : createdMs + overlapMs;
  const { directorySecretsPerKeyMax: secretsMax } = bounds;
  const issued = { digest, createdMs, expiresMs: expiresAt };
  const to = withNewSecret(key, issued, { endOf: () => olderEndMs, secretsMax });
  if (to === undefined) {
    return refused('conflict', `${key.id} has ${secretsMax} secrets that are valid: remove one first.`);
  }
  // A leaked secret may have ended already.
  const validEndsMs = key.secrets.map(expiryOf).filter((endMs) => endMs > createdMs);
  const after = {
    secret: digestStart(issued.digest),
    expiresAt: isoOf(expiresAt),
    othersEndAt:
      validEndsMs.length === 0 ? undefined : isoOfEnd(Math.min(olderEndMs, Math.max(...validEndsMs))),
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
