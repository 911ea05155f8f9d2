import { isoOf, isoSecondOf } from '../../shared/schema/dates-and-durations.ts';
import type { DeadState } from '../../shared/schema/query-words.ts';
import { dayMs } from '../../shared/words/figures.js';
import type { DeadRequests } from '../../usage/read/dead-secrets-reader.ts';
import { foundResponse } from '../admin-response.ts';
import { defineRoute, type Route } from '../api/route.ts';
import { type DeadSecretsShown, listDeadSecretsWire } from '../wires/keys/dead-secrets.ts';
import { findKnownKeys, type ListedKey } from './find-keys.ts';
import { fixedState } from './key-item.ts';
import type { KeySources } from './key-sources.ts';

/** `GET /dead-secrets` lists the secrets that are not valid but were used in the last 24 hours. */
export function deadSecretsRoute(keys: KeySources): Route {
  return defineRoute({
    ...listDeadSecretsWire,
    needs: 'read',
    readsCounts: true,
    respond: async () => foundResponse(await deadSecrets(keys)),
  });
}

/** The result is undefined when a store does not reply. */
async function deadSecrets(sources: KeySources): Promise<DeadSecretsShown | undefined> {
  if (sources.usage === undefined) return { secrets: [] };
  const nowMs = sources.nowMs();
  const used = await sources.usage.reader.deadSecrets({ fromMs: nowMs - dayMs, toMs: nowMs });
  if (used === undefined) return undefined;
  const found = await findKnownKeys(sources, [...new Set(used.secrets.map(({ keyId }) => keyId))]);
  if (found === undefined) return undefined;
  const byId = new Map(found.map((listed) => [listed.key.id, listed]));
  return {
    secrets: used.secrets.flatMap(({ keyId, digestStart, ...requests }) => {
      const listed = byId.get(keyId);
      const state = deadStateOf(listed, digestStart, nowMs);
      if (state === undefined) return [];
      const { name, plan } = listed?.isUnread ? {} : (listed?.key ?? {});
      return [{ key: keyId, name, plan, digestStart, state, ...usesOf(requests) }];
    }),
    others: used.others && usesOf(used.others),
    unknown: used.unknown && usesOf(used.unknown),
    unread: used.unread && usesOf(used.unread),
  };
}

/** Returns why a secret is not valid; undefined if it is valid now. */
function deadStateOf(
  listed: ListedKey | undefined,
  digestStart: string,
  nowMs: number,
): DeadState | undefined {
  if (listed?.isUnread) return 'unknown';
  const secret = listed?.secrets.find((one) => one.digestStart === digestStart);
  if (listed === undefined || secret === undefined) return 'removed';
  const { key, secrets, source } = listed;
  if (secret.leak?.ended) return 'leaked';
  if (key.disabled) return source === 'file' ? 'disabled' : 'revoked';
  if (fixedState(key, secrets, nowMs) === 'disabled') return 'no_plan';
  return secret.expiresMs <= nowMs ? 'expired' : undefined;
}

function usesOf({ requests, addresses, firstHourMs, lastMs }: DeadRequests) {
  return { requests, addresses, firstHourAt: isoSecondOf(firstHourMs), lastAt: isoOf(lastMs) };
}
