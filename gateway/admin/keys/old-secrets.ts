import { isoOf, isoOfEnd } from '../../shared/schema/dates-and-durations.ts';
import { dayMs } from '../../shared/words/figures.js';
import { foundResponse } from '../admin-response.ts';
import { lacksData } from '../api/missing-data.ts';
import { defineRoute, type Route } from '../api/route.ts';
import { listOldSecretsWire, type OldSecretsShown } from '../wires/keys/old-secrets.ts';
import { findKnownKeys, type ListedKey } from './find-keys.ts';
import { newestSecret } from './key-item.ts';
import type { KeySources, SecretView } from './key-sources.ts';

/** `GET /old-secrets` lists the owners that have not moved to their new secret yet. The list is cached for a short time. */
export function oldSecretsRoute(keys: KeySources): Route {
  const { oldSecretsKeptMs } = keys.bounds;
  let kept: { readonly untilMs: number; readonly shown: OldSecretsShown } | undefined;
  return defineRoute({
    ...listOldSecretsWire,
    needs: 'read',
    readsCounts: true,
    async respond() {
      if (kept === undefined || kept.untilMs <= performance.now()) {
        const shown = await oldSecrets(keys);
        if (shown === undefined) return foundResponse(undefined);
        // An incomplete list is not kept, so that each response says what it lacks.
        kept = { untilMs: performance.now() + (lacksData() ? 0 : oldSecretsKeptMs), shown };
      }
      return foundResponse(kept.shown);
    },
  });
}

/** The result is undefined when a store does not reply. */
async function oldSecrets(sources: KeySources): Promise<OldSecretsShown | undefined> {
  const { usage, bounds } = sources;
  if (usage === undefined) return { secrets: [] };
  const nowMs = sources.nowMs();
  const active = await usage.reader.active();
  if (active === undefined) return undefined;
  const found = await findKnownKeys(
    sources,
    active.map(({ keyId }) => keyId),
  );
  if (found === undefined) return undefined;
  const period = { fromMs: nowMs - (usage.state().keptDays - 1) * dayMs, toMs: nowMs };
  const rows: OldSecretsShown['secrets'][number][] = [];
  for (const listed of found) {
    const rotated = rotatedSecrets(listed, nowMs);
    if (rotated === undefined) continue;
    const { newest, older } = rotated;
    const digests = [newest, ...older].map(({ digestStart }) => digestStart);
    const uses = await usage.reader.secretsUsed(listed.key.id, digests, period);
    if (uses === undefined) return undefined;
    const lastMsOf = (secret: SecretView) => uses.get(secret.digestStart)?.lastMs ?? 0;
    const { id, name, plan } = listed.key;
    for (const secret of older) {
      if (lastMsOf(secret) <= newest.createdMs) continue;
      rows.push({
        ...{ key: id, name, plan, digestStart: secret.digestStart },
        lastAt: isoOf(lastMsOf(secret)),
        endsAt: isoOfEnd(secret.expiresMs),
        newest: {
          digestStart: newest.digestStart,
          issuedAt: isoOf(newest.createdMs),
          lastAt: isoOf(lastMsOf(newest) || undefined),
        },
      });
    }
  }
  rows.sort((a, b) => endMsOf(a) - endMsOf(b) || (a.key < b.key ? -1 : 1));
  const more = rows.length - bounds.oldSecretsMax;
  return {
    at: isoOf(nowMs),
    secrets: rows.slice(0, bounds.oldSecretsMax),
    more: more > 0 ? more : undefined,
  };
}

function endMsOf({ endsAt }: { readonly endsAt?: string | undefined }): number {
  return endsAt === undefined ? Number.POSITIVE_INFINITY : Date.parse(endsAt);
}

/** Returns the newest secret and the older secrets that are still valid; undefined if the key has none of these. */
function rotatedSecrets({ key, secrets }: ListedKey, nowMs: number) {
  const newest = newestSecret(secrets, nowMs);
  if (key.disabled || newest?.createdMs === undefined) return undefined;
  const older = secrets.filter(
    (secret) => secret !== newest && secret.expiresMs > nowMs && !secret.leak?.ended,
  );
  return older.length === 0 ? undefined : { newest: { ...newest, createdMs: newest.createdMs }, older };
}
