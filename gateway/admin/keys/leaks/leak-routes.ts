import type * as z from 'zod';
import { type KeyChange, leakChange } from '../../../fleet/changes.ts';
import type { Judged } from '../../../keys/leaks/apply-report.ts';
import { leakedPlace } from '../../../keys/leaks/leaked-place.ts';
import type { Leaks } from '../../../keys/leaks/leaks.ts';
import type { ReportedSecret } from '../../../keys/leaks/read-report.ts';
import { digestSecret, digestStart, isInventedSecret } from '../../../shared/secrets.ts';
import type { Bounds } from '../../../shared/timeouts-and-sizes.ts';
import { type AdminResponse, errorResponse, jsonResponse } from '../../admin-response.ts';
import { defineRoute, type Route } from '../../api/route.ts';
import {
  type JudgedSecrets,
  type leakedSecrets,
  listLeaksWire,
  type reported,
  reportLeaksWire,
} from '../../wires/keys/leaks.ts';
import { leakView } from '../key-item.ts';
import { type KeySources, placeOfKey } from '../key-sources.ts';

export interface LeakRouteSources extends Pick<KeySources, 'settings' | 'bounds'> {
  readonly leaks: Pick<Leaks, 'apply' | 'inTurn' | 'blocked'>;
  /** Records a change that a report has made. */
  readonly record: (change: KeyChange) => void;
}

/** The routes that take reports of leaked secrets, and list the leaked secrets of keys in the configuration. */
export function leakRoutes({ settings, leaks, record, bounds }: LeakRouteSources): readonly Route[] {
  return [
    defineRoute({
      ...listLeaksWire,
      needs: 'read',
      respond() {
        const secrets = [...leaks.blocked.all()].map(({ digest, keyId, leak }) => ({
          key: keyId,
          ...placeOfKey(settings(), keyId),
          digestStart: digestStart(digest),
          leak: leakView(leak),
        }));
        return jsonResponse({ secrets } satisfies z.output<typeof leakedSecrets>);
      },
    }),
    defineRoute({
      ...reportLeaksWire(bounds),
      needs: 'write',
      bodyBytesMax: bounds.leakBodyBytesMax,
      bodyMembersMax: bounds.leakBodyMembersMax,
      async respond({ body, token: { name } }) {
        const secrets = body.map((one) => reportedSecret(one, bounds));
        const applied = await leaks.inTurn(`token ${name}`, (slices) =>
          leaks.apply(secrets, {
            settings: settings(),
            by: name,
            record: (leak) => record(leakChange(leak)),
            slices,
          }),
        );
        if (applied.kind === 'away') return incomplete(applied.reason);
        const judged: JudgedSecrets = secrets.map(({ digest, place }, index) => ({
          token_hash: digest,
          token_type: place.type ?? '',
          ...judgement(applied.judged[index]),
        }));
        return jsonResponse(judged);
      },
    }),
  ];
}

function reportedSecret(
  { token, sha256, ...place }: z.output<typeof reported>,
  bounds: Bounds,
): ReportedSecret {
  return {
    digest: sha256 ?? digestSecret(token ?? ''),
    isInvented: token !== undefined && isInventedSecret(token),
    place: leakedPlace(place, token, bounds),
  };
}

function incomplete(reason: string): AdminResponse {
  const message = `The store failed (${reason}). Some of the secrets may have ended: send the report again.`;
  return errorResponse('store_unavailable', message, { 'Retry-After': '1' });
}

function judgement(
  judged: Judged | undefined,
): Pick<JudgedSecrets[number], 'label' | 'key' | 'ended' | 'descendants'> {
  if (judged?.kind !== 'known') return { label: 'false_positive' };
  const { keyId: key, ended, descendants } = judged;
  return {
    label: 'true_positive',
    key,
    ended,
    ...(descendants.length > 0 && { descendants: [...descendants] }),
  };
}
