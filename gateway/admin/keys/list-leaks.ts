import type * as z from 'zod';
import type { BlockedSecrets } from '../../keys/leaks/blocked/blocked-secrets.ts';
import { digestStart } from '../../shared/secrets.ts';
import { jsonResponse } from '../admin-response.ts';
import { defineRoute, type Route } from '../api/route.ts';
import { type leakedSecrets, listLeaksWire } from '../wires/keys/leaks.ts';
import { leakView } from './key-item.ts';
import { type KeySources, placeOfKey } from './key-sources.ts';

/** `GET /leaks` lists the leaked secrets of keys in the configuration. */
export function listLeaksRoute(
  { settings }: Pick<KeySources, 'settings'>,
  blocked: Pick<BlockedSecrets, 'all'>,
): Route {
  return defineRoute({
    ...listLeaksWire,
    needs: 'read',
    respond() {
      const secrets = [...blocked.all()].map(({ digest, keyId, leak }) => ({
        key: keyId,
        ...placeOfKey(settings(), keyId),
        digestStart: digestStart(digest),
        leak: leakView(leak),
      }));
      return jsonResponse({ secrets } satisfies z.output<typeof leakedSecrets>);
    },
  });
}
