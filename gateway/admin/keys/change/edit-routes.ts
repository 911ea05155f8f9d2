import * as z from 'zod';
import { type DirectoryKey, statedOf } from '../../../keys/directory/directory-key.ts';
import { keySchema, type StatedKey } from '../../../keys/key-schema.ts';
import { fields } from '../../../shared/schema/schema-parts.ts';
import { digestStart } from '../../../shared/secrets.ts';
import { type AdminResponse, errorResponse, jsonResponse } from '../../admin-response.ts';
import { defineRoute, type Route } from '../../api/route.ts';
import { defineWire, ifMatchHeader, keyIdParameter } from '../../api/wire.ts';
import { type KeyChangeSources, type Refused, refused } from './change-sources.ts';
import { definitionAnswer, definitionResponse, differences } from './definition.ts';
import { type Edit, editKey } from './edit-key.ts';
import { keptOfId, keptOfIdShown } from './kept-of-id.ts';
import { termsFault } from './key-terms.ts';

const { id: _, secrets: __, ...changeable } = keySchema.shape;

export const changeKeyBody = fields(
  `an object with ${Object.keys(changeable).join(', ')}`,
  Object.fromEntries(Object.entries(changeable).map(([name, member]) => [name, changeOf(member)])),
);

type Changes = { readonly [Name in keyof typeof changeable]?: StatedKey[Name] | null };

/**
 * Returns the schema of a member in a PATCH body. Null removes an optional member. A member with a default does not
 * accept null.
 */
function changeOf(member: z.ZodType): z.ZodType {
  if (member instanceof z.ZodOptional) return member.nullable();
  return (member instanceof z.ZodDefault ? (member.unwrap() as z.ZodType) : member).optional();
}

export const deletedKey = z.object({ id: z.string(), kept: keptOfIdShown.optional() });

export const changeKeyWire = defineWire({
  method: 'PATCH',
  path: '/keys/{id}',
  operationId: 'changeKey',
  tag: 'Keys',
  summary: 'Change a key of the key directory',
  description:
    'Absent members stay unchanged; null removes a name, limits or operations. `disabled: true` revokes the key: its next request gets 401 on every process. A key of the configuration gets 409, and the message names the file and the line to edit.',
  params: { id: keyIdParameter },
  headers: { 'If-Match': ifMatchHeader },
  body: changeKeyBody,
  answers: { 200: definitionAnswer },
});

export const deleteKeyWire = defineWire({
  method: 'DELETE',
  path: '/keys/{id}',
  operationId: 'deleteKey',
  tag: 'Keys',
  summary: 'Delete a key of the key directory',
  description: `The next request with a secret of the key gets 401 on every process, and the key's grant ends. The used requests and a ban remain, and apply to a later key with the same id; \`kept\` in the response contains them. A deletion cannot be undone. To revoke a key for a while, disable the key.`,
  params: { id: keyIdParameter },
  headers: { 'If-Match': ifMatchHeader },
  answers: { 200: { description: 'The key is deleted.', schema: deletedKey } },
});

/** The routes that change or delete a key of the directory. */
export function editRoutes(sources: KeyChangeSources): readonly Route[] {
  return [
    defineRoute({
      ...changeKeyWire,
      needs: 'write',
      async respond({ body, ...request }) {
        const edited = await editKey(sources, request, (key) => update(sources, key, body));
        return edited.kind === 'refused' ? edited.response : definitionResponse(edited.key);
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
    const message = `${key.id} is deleted. The store failed (${ended.reason}) while its grant was ended: the grant may still apply to a later key with this id.`;
    return errorResponse('store_unavailable', message);
  }
  const kept = await keptOfId(sources, key);
  return jsonResponse({ id: key.id, kept } satisfies z.output<typeof deletedKey>);
}

function update(
  { settings }: Pick<KeyChangeSources, 'settings'>,
  key: DirectoryKey,
  body: Changes,
): Edit | { readonly kind: 'unchanged' } | Refused {
  const { createdMs, secrets, pastSecrets } = key;
  const to = { ...changedBy(body, statedOf(key)), createdMs, secrets, pastSecrets };
  const changed = differences(statedOf(key), statedOf(to));
  if (changed === undefined) return { kind: 'unchanged' };
  const names = Object.keys({ ...changed.before, ...changed.after });
  // Only changes of plan, limits, groups or operations are checked. An operator can therefore still revoke or rename a key
  // whose plan was removed.
  const isOnTerms = ['plan', 'limits', 'groups', 'operations'].some((term) => names.includes(term));
  const fault = isOnTerms ? termsFault(to, settings()) : undefined;
  if (fault !== undefined) return refused('invalid_request', fault);
  const isOnlyDisabled = names.length === 1 && names[0] === 'disabled';
  const action = !isOnlyDisabled ? 'update' : to.disabled ? 'revoke' : 'restore';
  return { kind: 'edit', to, change: { action, ...changed } };
}

/** Applies a PATCH to a key: absent members stay unchanged, and null removes a member. */
function changedBy(changes: Changes, stated: StatedKey): StatedKey {
  const members = Object.entries({ ...stated, ...changes });
  return Object.fromEntries(members.filter(([, member]) => member !== null)) as unknown as StatedKey;
}
