import type * as z from 'zod';
import type { DirectoryKey } from '../../../keys/directory/directory-key.ts';
import { keySchema } from '../../../keys/key-schema.ts';
import { toLimitFields } from '../../../keys/limit-fields.ts';
import { fields, flag } from '../../../shared/schema/schema-parts.ts';
import { digestStart } from '../../../shared/secrets.ts';
import { type AdminResponse, errorResponse, jsonResponse } from '../../admin-response.ts';
import { noQuery } from '../../api/query-parameters.ts';
import { defineRoute, type Route } from '../../api/route.ts';
import { type KeyChangeSources, type Refused, refused } from './change-sources.ts';
import { definitionResponse, differences, statedOf, toDefinition } from './definition.ts';
import { type Edit, editKey } from './edit-key.ts';
import { keptOfId } from './kept-of-id.ts';
import { termsFault } from './key-terms.ts';

const { plan, name, limits, operations } = keySchema.shape;

const changesBody = fields('an object with plan, name, limits, operations and disabled', {
  plan: plan.optional(),
  name: name.nullable(),
  limits: limits.nullable(),
  operations: operations.nullable(),
  disabled: flag().optional(),
});

/** Changes of what a key of the directory is, and its end. */
export function editRoutes(sources: KeyChangeSources): readonly Route[] {
  return [
    defineRoute({
      method: 'PATCH',
      path: '/keys/{id}',
      needs: 'write',
      query: noQuery,
      body: changesBody,
      async respond({ body, ...request }) {
        const edited = await editKey(sources, request, (key) => update(sources, key, body));
        return edited.kind === 'refused' ? edited.response : definitionResponse(edited.key);
      },
    }),
    defineRoute({
      method: 'DELETE',
      path: '/keys/{id}',
      needs: 'write',
      query: noQuery,
      async respond(request) {
        const edited = await editKey(sources, request, (key) => {
          const secrets = key.secrets.map(({ digest }) => digestStart(digest));
          const before = { ...statedOf(key), disabled: key.disabled, secrets };
          return { kind: 'edit', to: 'removed', change: { action: 'delete', before } };
        });
        return edited.kind === 'refused' ? edited.response : endGrant(sources, edited.key);
      },
    }),
  ];
}

/** A grant is for the customer whose key is gone. What was counted and a ban stay, since deleting must not be a way around them. */
async function endGrant(sources: KeyChangeSources, key: DirectoryKey): Promise<AdminResponse> {
  const ended = await sources.limiter.ungrant(key.id);
  if (ended.kind !== 'changed') {
    const message = `${key.id} is deleted. The store failed (${ended.reason}) when its grant was to be ended: a grant may still hold for a later key with this id.`;
    return errorResponse('store_unavailable', message);
  }
  const kept = await keptOfId(sources, key);
  return jsonResponse({ id: key.id, ...(kept && { kept }) });
}

function update(
  { settings }: Pick<KeyChangeSources, 'settings'>,
  key: DirectoryKey,
  body: z.output<typeof changesBody>,
): Edit | { readonly kind: 'unchanged' } | Refused {
  const terms = {
    plan: body.plan ?? key.plan,
    limits: merged(body.limits, key.limits && toLimitFields(key.limits)),
    operations: merged(body.operations, key.operations),
  };
  const to = toDefinition({
    id: key.id,
    ...terms,
    name: merged(body.name, key.name),
    disabled: body.disabled ?? key.disabled,
    createdMs: key.createdMs,
    secrets: key.secrets,
  });
  const changed = differences(
    { ...statedOf(key), disabled: key.disabled },
    { ...statedOf(to), disabled: to.disabled },
  );
  if (changed === undefined) return { kind: 'unchanged' };
  const names = Object.keys({ ...changed.before, ...changed.after });
  // A key whose plan is not in the configuration any more can still be revoked and renamed.
  const isOnTerms = names.some((one) => one !== 'disabled' && one !== 'name');
  const fault = isOnTerms ? termsFault(terms, settings()) : undefined;
  if (fault !== undefined) return refused('invalid_request', fault);
  const isOnlyDisabled = names.length === 1 && names[0] === 'disabled';
  const action = !isOnlyDisabled ? 'update' : to.disabled ? 'revoke' : 'restore';
  return { kind: 'edit', to, change: { action, ...changed } };
}

/** Absent: as it was; null: none. */
function merged<T>(stated: T | null | undefined, before: T | undefined): T | undefined {
  return stated === undefined ? before : (stated ?? undefined);
}
