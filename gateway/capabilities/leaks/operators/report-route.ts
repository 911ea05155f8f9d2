import type * as z from 'zod';
import { type AdminResponse, jsonResponse, storeUnavailable } from '../../../admin/admin-response.ts';
import { defineRoute, type Route } from '../../../admin/api/route.ts';
import { leakChange } from '../../../fleet/changes.ts';
import { digestSecret, isInventedSecret } from '../../../shared/secrets.ts';
import type { Bounds } from '../../../shared/timeouts-and-sizes.ts';
import type { OperatorsSources } from '../../interfaces/operators.ts';
import type { Judged } from '../report/apply-report.ts';
import { leakedPlace } from '../report/leaked-place.ts';
import type { ReportedSecret } from '../report/read-report.ts';
import type { Reports } from '../reports.ts';
import { type JudgedSecrets, type reported, reportLeaksWire } from './wires.ts';

/** `POST /leaks` takes reports of leaked secrets. */
export function reportLeaksRoute(
  reports: Reports,
  { keys: { settings, bounds }, recordKeyChange }: Pick<OperatorsSources, 'keys' | 'recordKeyChange'>,
): Route {
  return defineRoute({
    ...reportLeaksWire,
    needs: 'write',
    bodyBytesMax: bounds.leakBodyBytesMax,
    bodyMembersMax: bounds.leakBodyMembersMax,
    async respond({ body, author }) {
      const secrets = body.map((one) => reportedSecret(one, bounds));
      const applied = await reports.inTurn(`token ${author.by}`, (slices) =>
        reports.apply(secrets, {
          settings: settings(),
          by: author.by,
          record: (leak) => recordKeyChange({ ...leakChange(leak), ...author }),
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
  });
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
  const rest = '. Some of the secrets may have ended: send the report again.';
  return storeUnavailable(rest, `Redis failed (${reason})`);
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
