import { type DirectoryKey, expiryOf } from '../../../keys/directory/directory-key.ts';
import { inForceForDirectory } from '../../../keys/key-table.ts';
import { compileKey, planNameAt } from '../../../keys/plans/compile-key.ts';
import type { Key } from '../../../shared/model.ts';
import { isoOfEnd } from '../../../shared/schema/dates-and-durations.ts';
import { jsonResponse } from '../../admin-response.ts';
import { defineRoute, type Route } from '../../api/route.ts';
import { findSecretWire, type KnownOwner, type Owner } from '../../wires/keys/directory.ts';
import { leakView } from '../key-item.ts';
import { placeOfKey } from '../key-sources.ts';
import { type KeyChangeSources, storeFailed } from './change-sources.ts';

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
          return jsonResponse(
            ownerOf({ ...found.key, plan: planNameAt(found.key, nowMs()) }, expiresMs, {
              source: 'directory',
              refusedFor,
              leak,
            }),
          );
        }
        default:
          return jsonResponse({ known: false } satisfies Owner);
      }
    },
  });

  function refusalOf(key: DirectoryKey): KnownOwner['refusedFor'] {
    if (settings().keys.has(key.id)) return 'id_in_configuration';
    return compileKey(key, inForceForDirectory(settings(), nowMs())) === undefined ? 'no_plan' : undefined;
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
