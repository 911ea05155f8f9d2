import { isDeepStrictEqual } from 'node:util';
import type { KeyDetail } from '../../../admin/wires/keys/key.ts';
import { listPlansWire } from '../../../admin/wires/plans/plans.ts';
import { type LimitsByField, toLimitFields, toLimits } from '../../../keys/limits/limit-fields.ts';
import { perLimit } from '../../../keys/limits/limit-texts.ts';
import { withPlanAt } from '../../../keys/plans/compile-key.ts';
import { exemptionMembers, statedExemptions } from '../../../shared/schema/exemptions.ts';
import { digestSecret, digestStart } from '../../../shared/secrets.ts';
import { beginning, dayMs, ending, figure, listOf } from '../../../shared/words/figures.js';
import { per, policyName } from '../../../shared/words/limit-names.js';
import type { AdminClient } from '../../admin/admin-client.ts';
import { CommandError } from '../../output/command-error.ts';
import { changesAfterEdit } from '../edit-key.ts';
import type { KeyEdit } from '../file/writable-keys.ts';
import { requirePlanFor } from '../file-keys.ts';
import type { ManyChange } from './change-many.ts';

/** What a change would do to a key, from the data of the key. The admin API decides again when the change is made. */
type Foresee = ManyChange['foresee'];

export const foreseeUnban: Foresee = ({ ban, state }) => ban !== undefined || state === 'unknown';

export const foreseeUngrant: Foresee = ({ grant, state }) => grant !== undefined || state === 'unknown';

/** @param untilAt ISO 8601 */
export function foreseeBan({
  untilAt,
  reason,
}: {
  readonly untilAt: string;
  readonly reason?: string | undefined;
}): Foresee {
  return ({ id, ban }, { bounds }) => {
    const untilMs = Date.parse(untilAt);
    requireNotTooLate(untilMs, bounds);
    if (ban !== undefined && ban.untilMs > untilMs)
      throw new CommandError(`${id} is banned until ${ending(ban.untilMs)} already, which is later.`);
    return !(ban?.untilMs === untilMs && ban.byHand && ban.reason === reason);
  };
}

/** @param body the body of the request */
export function foreseeGrant(body: {
  readonly limits?: LimitsByField | undefined;
  readonly fromAt?: string | undefined;
  readonly untilAt: string;
}): Foresee {
  return ({ id, plan, windows, grant }, { bounds }) => {
    const untilMs = Date.parse(body.untilAt);
    requireNotTooLate(untilMs, bounds);
    const limits = toLimits(body.limits ?? {});
    // The windows are not known while Redis is away.
    const other = limits.find(({ window, group }) =>
      windows.every(({ name }) => name !== policyName(window, group)),
    );
    if (windows.length > 0 && other !== undefined) {
      const has = listOf(windows.map(({ name, limit }) => `${figure(limit)} ${per(name)}`));
      throw new CommandError(`${id} (${plan}) has no limit ${perLimit(other)}. Its limits are ${has}.`);
    }
    const fromMs = body.fromAt === undefined ? undefined : Date.parse(body.fromAt);
    if (grant !== undefined && (grant.fromMs === undefined) !== (fromMs === undefined)) {
      const from = grant.fromMs === undefined ? '' : ` from ${beginning(grant.fromMs)}`;
      throw new CommandError(
        `${id} has a grant${from} until ${ending(grant.untilMs)}, which the new grant would replace now: end the present grant first.`,
      );
    }
    const wanted = { ...exemptionMembers(statedExemptions(body)), limits: toLimitFields(limits) };
    const present = grant && {
      ...exemptionMembers(statedExemptions(grant)),
      limits: toLimitFields(toLimits(grant.limits ?? {})),
    };
    return !(grant?.fromMs === fromMs && grant?.untilMs === untilMs && isDeepStrictEqual(present, wanted));
  };
}

/** @param secretOf returns the new secret of a key, which an earlier run may have given it */
export function foreseeRotation(secretOf: (id: string) => string): Foresee {
  return (key) => {
    requireInDirectory(key);
    const start = digestStart(digestSecret(secretOf(key.id)));
    return key.secrets.every((secret) => secret.digestStart !== start);
  };
}

export function foreseeDisabling(disabled: boolean): Foresee {
  return (key) => {
    requireInDirectory(key);
    return key.definition?.disabled !== disabled;
  };
}

/** For keys of the directory. The plans are read once. */
export function foreseeEdit(edit: KeyEdit): Foresee {
  let plans: Promise<ReadonlyMap<string, { readonly isCustom: boolean }>> | undefined;
  return async (key, client) => {
    requireInDirectory(key);
    const { definition } = key;
    if (definition === undefined) return true;
    const { plan, limits, changes, name, addresses } = withPlanAt(definition, Date.now());
    const present = { plan, limits, changes, name, addresses };
    const isOfChanges = edit.later !== undefined || edit.withdraw !== undefined;
    const wanted = {
      plan: edit.plan ?? plan,
      limits: edited(edit.limits, limits),
      changes: isOfChanges ? (changesAfterEdit(changes, edit, Date.now()) ?? undefined) : changes,
      name: edited(edit.name, name),
      addresses: edited(edit.addresses, addresses),
    };
    if (edit.plan !== undefined || edit.limits !== undefined || edit.later !== undefined) {
      plans ??= readPlans(client);
      const known = await plans;
      requirePlanFor(wanted, known);
      if (edit.later !== undefined) requirePlanFor(edit.later, known);
    }
    const isSame = isDeepStrictEqual(present, wanted);
    return !isSame || (edit.expiresAt !== undefined && changesEnds(key, edit.expiresAt));
  };
}

function edited<Member>(wanted: Member | null | undefined, present: Member | undefined): Member | undefined {
  return wanted === undefined ? present : (wanted ?? undefined);
}

/** Whether a new end of the newest secret changes the end of any secret. @param expiresAt null: never */
function changesEnds({ secrets }: KeyDetail, expiresAt: string | null): boolean {
  const endOf = (at: string | null | undefined) =>
    at === undefined || at === null ? Number.POSITIVE_INFINITY : Date.parse(at);
  const ends = secrets.map((secret) => endOf(secret.expiresAt));
  return ends.some((endMs, index) =>
    index === ends.length - 1 ? endMs !== endOf(expiresAt) : endMs > endOf(expiresAt),
  );
}

async function readPlans(client: AdminClient) {
  const { body } = await client.ask(listPlansWire);
  return new Map(body.plans.map((plan) => [plan.name, plan]));
}

/** The admin API does not change the definition of a key of a file. */
function requireInDirectory({ id, source }: KeyDetail): void {
  if (source === 'file')
    throw new CommandError(`${id} is in the keys file: leave out --directory to change it there.`);
}

function requireNotTooLate(untilMs: number, { grantMaxMs }: AdminClient['bounds']): void {
  if (untilMs - Date.now() > grantMaxMs)
    throw new CommandError(`The end must be at most ${grantMaxMs / dayMs} days ahead.`);
}
