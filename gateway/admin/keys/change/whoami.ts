import { compileKey } from '../../../keys/compile-key.ts';
import { type DirectoryKey, expiryOf } from '../../../keys/directory/directory-key.ts';
import { plansAt } from '../../../keys/plans.ts';
import { digestOf, fields } from '../../../shared/schema/schema-parts.ts';
import { jsonResponse } from '../../admin-response.ts';
import { noQuery } from '../../api/query-parameters.ts';
import { defineRoute, type Route } from '../../api/route.ts';
import { placeOfKey } from '../key-sources.ts';
import { type KeyChangeSources, storeFailed } from './change-sources.ts';
import { instantOf } from './definition.ts';

/** The key that a secret belongs to. */
interface Owner {
  readonly id: string;
  readonly plan: string;
  readonly disabled: boolean;
  readonly expiresMs: number;
  readonly from: { readonly source: string; readonly file?: string; readonly line?: number };
  readonly refusedFor?: RefusedFor | undefined;
}

/** Why the configuration refuses a key of the directory that is neither revoked nor expired. */
type RefusedFor = 'id_in_configuration' | 'no_plan';

export const whoamiBody = fields('an object with sha256', { sha256: digestOf('secret') });

/** `POST /whoami` finds the owner of a secret by its digest, first in the configuration, as for a request. */
export function whoamiRoute({
  settings,
  directory,
  nowMs,
}: Pick<KeyChangeSources, 'settings' | 'directory' | 'nowMs'>): Route {
  return defineRoute({
    method: 'POST',
    path: '/whoami',
    needs: 'read',
    query: noQuery,
    body: whoamiBody,
    async respond({ body: { sha256 } }) {
      const written = ownerInFile(sha256);
      if (written !== undefined) return jsonResponse(ownerView(written));
      const found = await directory?.find(sha256);
      switch (found?.kind) {
        case 'away':
          return storeFailed({ ...found, mayHaveRun: false }).response;
        case 'found': {
          const { id, plan, disabled, secrets } = found.key;
          const secret = secrets.find(({ digest }) => digest === sha256);
          const expiresMs = secret === undefined ? 0 : expiryOf(secret);
          const from = { source: 'directory' };
          const refusedFor = refusalOf(found.key);
          return jsonResponse(ownerView({ id, plan, disabled, expiresMs, from, refusedFor }));
        }
        default:
          return jsonResponse({ known: false });
      }
    },
  });

  function ownerInFile(sha256: string): Owner | undefined {
    const found = settings().keys.find(sha256);
    if (found === undefined) return undefined;
    const { id, plan, disabled } = found.key;
    const from = { source: 'file', ...placeOfKey(settings(), id) };
    return { id, plan, disabled, expiresMs: found.secret.expiresMs, from };
  }

  function refusalOf(key: DirectoryKey): RefusedFor | undefined {
    if (settings().keys.has(key.id)) return 'id_in_configuration';
    return compileKey(key, plansAt(settings(), nowMs())) === undefined ? 'no_plan' : undefined;
  }

  function ownerView({ id, plan, disabled, expiresMs, from, refusedFor }: Owner): object {
    return {
      known: true,
      id,
      plan,
      ...from,
      ...(Number.isFinite(expiresMs) && { expiresAt: instantOf(expiresMs) }),
      isExpired: expiresMs <= nowMs(),
      isDisabled: disabled,
      ...(refusedFor && { refusedFor }),
    };
  }
}
