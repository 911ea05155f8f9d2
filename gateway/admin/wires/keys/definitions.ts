import * as z from 'zod';
import { keyId, keySchema, type StatedKey } from '../../../keys/key-schema.ts';
import {
  components,
  digestStart as digestStartShown,
  epochMs,
  instant,
  limitName,
  list,
  positive,
  stated,
  statedPart,
  words,
} from '../../../keys/response-parts.ts';
import { type Answer, defineWire, ifMatchHeader, keyIdParameter } from '../../../shared/http/wire.ts';
import { date, fields } from '../../../shared/schema/schema-parts.ts';
import { banAndGrantShape } from './keys.ts';

export const definedSecret = z.object({
  digestStart: digestStartShown,
  createdAt: instant,
  expiresAt: instant.optional(),
});

const partNames = ['limits', 'changes', 'groups'] as const;

/** The limits and later plans that a key states itself. */
export const keyParts = {
  limits: statedPart(keySchema.shape.limits, 'OwnLimits'),
  changes: statedPart(keySchema.shape.changes, 'PlanChanges'),
  groups: statedPart(keySchema.shape.groups, 'OwnGroups'),
} satisfies Record<(typeof partNames)[number], z.ZodType>;

/** A key as the keys file or the key directory states it, without the limits and operations of its plan. */
export const statedKeyShown = z.object({
  ...stated(keySchema.shape, [...partNames, 'id', 'plan', 'disabled', 'secrets']),
  ...keyParts,
  id: z.string(),
  plan: z.string(),
  disabled: z.boolean(),
  secrets: list(definedSecret.partial({ createdAt: true })).describe('The secrets in the stated order.'),
});

export const keyDefinition = statedKeyShown
  .extend({
    source: words('directory'),
    revision: positive.describe('Increases with each change.'),
    createdAt: instant,
    changedAt: instant,
    secrets: list(definedSecret).describe('The secrets in the order in which they were added.'),
    isUnchanged: z.boolean().optional().describe('If true, this request changed and recorded nothing.'),
  })
  .register(components, { id: 'KeyDefinition' });

/**
 * The state of a deleted key that applies to a later key with the same id: counts of open windows, a ban, a grant.
 */
const keptOfIdShown = z
  .object({
    windows: list(
      z.object({
        name: limitName,
        used: positive,
        resetMs: epochMs.describe('When the window resets, in epoch milliseconds.'),
      }),
    )
      .optional()
      .describe('The windows with used units.'),
    ...banAndGrantShape,
  })
  .describe(
    'The state that a key inherits from an earlier key with the same id. Only responses that issue or delete a key have it.',
  )
  .register(components, { id: 'KeptOfId' });

/** A definition with the issued secret. Only this response shows the secret. */
export const issuedKey = keyDefinition
  .extend({
    secret: z.string().describe('The new secret. It is not stored and cannot be shown again.'),
    kept: keptOfIdShown.optional(),
  })
  .register(components, { id: 'IssuedKey' });

export const definitionAnswer = {
  description: 'The present definition of the key.',
  schema: keyDefinition,
  headers: ['ETag'],
} as const satisfies Answer;

export const issuedAnswer = {
  description: 'The present definition of the key, with the issued secret.',
  schema: issuedKey,
  headers: ['ETag'],
} as const satisfies Answer;

const { id: _, secrets: __, ...changeable } = keySchema.shape;

/** The schema of a member in a PATCH body. Null removes an optional member. A member with a default does not accept null. */
function changeOf(member: z.ZodType): z.ZodType {
  if (member instanceof z.ZodOptional) return member.nullable();
  return (member instanceof z.ZodDefault ? (member.unwrap() as z.ZodType) : member).optional();
}

const changeKeyBody = fields(`an object with ${Object.keys(changeable).join(', ')} or expiresAt`, {
  ...Object.fromEntries(Object.entries(changeable).map(([name, member]) => [name, changeOf(member)])),
  expiresAt: date
    .nullable()
    .optional()
    .describe(
      'The time when the newest secret expires; null: never. Older secrets that would expire later expire at this time, too.',
    ),
});

export type Changes = { readonly [Name in keyof typeof changeable]?: StatedKey[Name] | null } & {
  /** Epoch ms. */
  readonly expiresAt?: number | null | undefined;
};

export const deletedKey = z
  .object({ id: z.string(), kept: keptOfIdShown.optional() })
  .register(components, { id: 'DeletedKey' });

export const changeKeyWire = defineWire({
  method: 'PATCH',
  path: '/keys/{id}',
  operationId: 'changeKey',
  tag: 'Keys',
  summary: 'Change a key of the key directory',
  description:
    'Absent members stay unchanged; null removes an optional member. `disabled: true` revokes the key: while Redis replies, every process refuses its next request. A key of the configuration gets 409, and the message names the file and the line to edit.',
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
  description: `While Redis replies, the key's grant ends, and every process refuses the next request with a secret of the key. The used requests and a ban remain, and apply to a later key with the same id; \`kept\` in the response contains them. A deletion cannot be undone.`,
  params: { id: keyIdParameter },
  headers: { 'If-Match': ifMatchHeader },
  answers: { 200: { description: 'The key is deleted.', schema: deletedKey } },
});

const { disabled: _disabled, secrets: _secrets, ...members } = keySchema.shape;

/**
 * The id of a new key. The ids `.` and `..` are refused, because clients remove such segments from the path of a URL.
 */
export const newKeyId = keyId.refine((written) => !/^\.\.?$/.test(written), 'must not consist of dots only');

export const issueKeyBody = fields('an object with id and plan', {
  ...members,
  id: newKeyId,
  expiresAt: date.optional().describe('The time when the secret expires.'),
});

export const issueKeyWire = defineWire({
  method: 'POST',
  path: '/keys',
  operationId: 'issueKey',
  tag: 'Keys',
  summary: 'Issue a key',
  description:
    'Issues a key of the key directory with its first secret. While Redis replies, the key works on every process at once. If another key has the id, the response is 409. With `Idempotency-Key`, the same token can repeat the request for one day. If the key was issued, a repeated request gets 200 with the key and no secret (`/keys/{id}/secrets` issues another). It gets 409 if the body differs or the key was deleted.',
  headers: {
    'Idempotency-Key': z
      .string()
      .regex(/^[!-~]+$/)
      .min(1)
      .max(200)
      .describe('A value that the client chooses, and sends again with a repeated request.'),
  },
  body: issueKeyBody,
  answers: { 200: definitionAnswer, 201: issuedAnswer },
});

export type KeptOfId = z.output<typeof keptOfIdShown>;
