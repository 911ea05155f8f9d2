import * as z from 'zod';
import { type KeyChange, keyActions } from '../../../fleet/changes.ts';
import { keyId } from '../../../keys/key-schema.ts';
import { expects, fields, membersByName, text } from '../../../shared/schema/schema-parts.ts';
import type { Bounds } from '../../../shared/timeouts-and-sizes.ts';
import { defineRoute, type Route } from '../../api/route.ts';
import { defineWire } from '../../api/wire.ts';

/** The actions that a command can report. The gateway itself records all other actions. */
const reported = keyActions.filter(
  (action) => !['unban', 'grant', 'ungrant', 'leak', 'makegood'].includes(action),
);

/** Matches a secret, a token or a complete digest, which the record of changes must not contain. */
const secretLike = /\btga?_\w{20}|(?<![0-9a-f])[0-9a-f]{64}(?![0-9a-f])/i;

export const reportChangeWire = (bounds: Bounds) =>
  defineWire({
    method: 'POST',
    path: '/changes',
    operationId: 'reportChange',
    tag: 'Configuration',
    summary: 'Report the change of a command',
    description:
      'A command that has changed a key in the files of the configuration reports it here, so that the record names who made the change. The gateway itself records changes through this API. A text that looks like a secret or a whole digest gets 400.',
    body: reportedChangeBody(bounds.changeMembersMax),
    answers: { 204: { description: 'The change is recorded.' } },
  });

/** `POST /changes` records a change that a command has made in the files of the configuration. */
export function reportedChangeRoute({
  record,
  bounds,
}: {
  readonly record: (change: KeyChange) => void;
  readonly bounds: Bounds;
}): Route {
  return defineRoute({
    ...reportChangeWire(bounds),
    needs: 'write',
    respond({ body: { action, key, before, after }, token }) {
      record({ action, by: token.name, key, before, after });
      return { status: 204, body: '' };
    },
  });
}

export function reportedChangeBody(membersMax: number) {
  const members = membersSchema(membersMax);
  return fields('an object with action and key', {
    action: z.enum(reported, expects(`one of ${reported.join(', ')}`)),
    key: keyId.optional().describe('The id of the key. Only an `import` may omit it.'),
    before: members.optional(),
    after: members.optional(),
  }).refine(({ action, key }) => action === 'import' || key !== undefined, {
    path: ['key'],
    error: 'is missing; write the id of a key',
  });
}

function membersSchema(membersMax: number) {
  const what = `an object with at most ${membersMax} members: texts, numbers, true, false, lists and objects of these`;
  const scalar = z.union([
    z
      .string()
      .refine((written) => !/\p{Cc}/u.test(written), 'must be a text without control characters')
      .refine(
        (written) => !secretLike.test(written),
        'must not be a secret or a whole digest; of a digest write the first 8 digits',
      ),
    z.number(),
    z.boolean(),
  ]);
  const member = z.union([scalar, z.array(scalar), membersByName(z.string(), scalar, what)], expects(what));
  return membersByName(text('a member of a key, such as plan', /^\w{1,32}$/), member, what).refine(
    (stated) => Object.keys(stated).length <= membersMax,
    expects(what),
  );
}
