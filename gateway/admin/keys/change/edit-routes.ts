import type * as z from 'zod';
import { endingBy } from '../../../keys/directory/change-secrets.ts';
import { type DirectoryKey, type DirectorySecret, statedOf } from '../../../keys/directory/directory-key.ts';
import type { StatedKey } from '../../../keys/key-schema.ts';
import { inForceForDirectory } from '../../../keys/key-table.ts';
import { withPlanAt } from '../../../keys/plans/compile-key.ts';
import { isoOf } from '../../../shared/schema/dates-and-durations.ts';
import { digestStart } from '../../../shared/secrets.ts';
import { type AdminResponse, errorResponse, jsonResponse } from '../../admin-response.ts';
import { defineRoute, type Route } from '../../api/route.ts';
import { type Changes, changeKeyWire, type deletedKey, deleteKeyWire } from '../../wires/keys/definitions.ts';
import { type KeyChangeSources, type Refused, refused } from './change-sources.ts';
import { differences, editedResponse } from './definition.ts';
import { type Edit, editKey } from './edit-key.ts';
import { keptOfId } from './kept-of-id.ts';
import { appliedLimits, termsFault } from './key-terms.ts';

export function editRoutes(sources: KeyChangeSources): readonly Route[] {
  return [
    defineRoute({
      ...changeKeyWire,
      needs: 'write',
      async respond({ body, ...request }) {
        const edited = await editKey(sources, request, (key) => update(sources, key, body));
        return edited.kind === 'refused' ? edited.response : editedResponse(edited);
      },
    }),
    defineRoute({
      ...deleteKeyWire,
      needs: 'write',
      async respond(request) {
        const edited = await editKey(sources, request, (key) => {
          const secrets = key.secrets.map(({ digest }) => digestStart(digest));
          const { id: _, ...before } = { ...statedOf(key), secrets };
          return { kind: 'edit', to: 'removed', change: { action: 'delete', before } };
        });
        return edited.kind === 'refused' ? edited.response : endGrant(sources, edited.key);
      },
    }),
  ];
}

/**
 * Ends the grant of a deleted key, because the grant was meant for that key's customer. The counts and the ban of a
 * deleted key stay, because deleting a key must not reset them.
 */
async function endGrant(sources: KeyChangeSources, key: DirectoryKey): Promise<AdminResponse> {
  const ended = await sources.limiter.adjust(key.id, { grant: 'none' });
  if (ended.kind !== 'changed') {
    const message = `${key.id} is deleted. Redis failed (${ended.reason}) while its grant was ended: the grant may still apply to a later key with this id.`;
    return errorResponse('store_unavailable', message);
  }
  const kept = await keptOfId(sources, key);
  return jsonResponse({ id: key.id, kept } satisfies z.output<typeof deletedKey>);
}

function update(
  { settings, nowMs }: Pick<KeyChangeSources, 'settings' | 'nowMs'>,
  key: DirectoryKey,
  { expiresAt, ...body }: Changes,
): Edit | { readonly kind: 'unchanged' } | Refused {
  const { createdMs, pastSecrets } = key;
  const secrets = expiresAt === undefined ? key.secrets : expiringAt(key.secrets, expiresAt);
  if (secrets === undefined)
    return refused('conflict', `${key.id} has no secret whose expiry could be changed.`);
  // An edit of the plan starts from the plan that the key has now, which a past change may have set.
  const editsPlan = [body.plan, body.limits, body.changes].some((member) => member !== undefined);
  const before = editsPlan ? withPlanAt(statedOf(key), nowMs()) : statedOf(key);
  const to = { ...changedBy(body, before), createdMs, secrets, pastSecrets };
  const changed = differences(
    { ...before, expiresAt: isoOf(newestOf(key.secrets)?.expiresMs) },
    { ...statedOf(to), expiresAt: isoOf(newestOf(secrets)?.expiresMs) },
  );
  if (changed === undefined) return { kind: 'unchanged' };
  const names = Object.keys({ ...changed.before, ...changed.after });
  // Only changes of plan, limits, groups or operations are checked. An operator can therefore still revoke or rename a key
  // whose plan was removed.
  const isOnTerms = ['plan', 'limits', 'changes', 'groups', 'operations'].some((term) =>
    names.includes(term),
  );
  const fault = isOnTerms ? termsFault(to, settings()) : undefined;
  if (fault !== undefined) return refused('invalid_request', fault);
  const isOnlyDisabled = names.length === 1 && names[0] === 'disabled';
  const action = !isOnlyDisabled ? 'update' : to.disabled ? 'revoke' : 'restore';
  const limits = appliedLimits(before, statedOf(to), inForceForDirectory(settings(), nowMs()));
  return { kind: 'edit', to, change: { action, ...changed, appliedLimits: limits } };
}

/** The newest secret comes last. */
function newestOf<Secret>(secrets: readonly Secret[]): Secret | undefined {
  return secrets.at(-1);
}

/** @param expiresAt null: the newest secret never expires @returns undefined without a secret */
function expiringAt(
  secrets: readonly DirectorySecret[],
  expiresAt: number | null,
): readonly DirectorySecret[] | undefined {
  const newest = newestOf(secrets);
  if (newest === undefined) return undefined;
  return secrets.map((secret) => {
    const { expiresMs, ...others } = secret;
    if (secret === newest) return expiresAt === null ? others : { ...others, expiresMs: expiresAt };
    return expiresAt === null ? secret : endingBy(secret, expiresAt);
  });
}

/** Applies a PATCH to a key: absent members stay unchanged, and null removes a member. */
function changedBy(changes: Changes, stated: StatedKey): StatedKey {
  const members = Object.entries({ ...stated, ...changes });
  return Object.fromEntries(members.filter(([, member]) => member !== null)) as unknown as StatedKey;
}
