import * as z from 'zod';
import type { LimitsChangeKind } from '../../capabilities/interfaces/events.ts';
import { keyChanges, limitsChanges } from '../../capabilities/lists/events.ts';
import { changeActions, keyActions } from '../../fleet/changes.ts';
import { keyId } from '../../keys/key-schema.ts';
import {
  components,
  count,
  instant,
  isComplete,
  list,
  missing,
  nextPage,
  positive,
  processId,
  version,
  words,
} from '../../keys/response-parts.ts';
import { afterPage, defineWire } from '../../shared/http/wire.ts';
import { cursor, instantParameter, queryOf, wholeNumber } from '../../shared/schema/query-parameters.ts';
import { expects, fields, membersByName, text } from '../../shared/schema/schema-parts.ts';
import type { Bounds } from '../../shared/timeouts-and-sizes.ts';
import { secretLike } from './ran-by.ts';

const changedMembers = z
  .record(z.string(), z.unknown())
  .describe(
    'Members of a key by their names, such as `plan` and `limits`, or the limits of a plan; `secret` is the beginning of a digest. A value with more than 200 characters of JSON is shown as a shortened text.',
  );

const changed = z
  .union([version, changedMembers])
  .optional()
  .describe('The version of a configuration, the limits of a plan, or members that describe the change.');

const limitsOfKey = z.record(z.string(), z.unknown());
const limitsByName = z.record(z.string(), limitsOfKey).optional();

export const listedShape = {
  id: z.string(),
  at: instant,
  process: processId,
  processes: positive.describe(
    'The number of processes that reported this, at most 500. `process` is one of them.',
  ),
};

const limitsWords = Object.values<LimitsChangeKind>(limitsChanges).flatMap(({ words }) => words ?? []);
const authors = [
  '`file` for an edit of the configuration files',
  '`holder` for the holder of the key',
  '`github` for a report of GitHub',
  ...limitsWords.map(({ by }) => by),
];

const changesPage = z
  .object({
    isComplete,
    missing,
    changes: list(
      z.object({
        ...listedShape,
        action: words(...changeActions).describe(
          [
            'The change of a key, or of many keys by `import` or `makegood`. `token`: the tokens of this API changed.',
            ...limitsWords.map(({ action }) => action),
            '`reload` and `reload_failed`: the configuration was, or was not, loaded.',
          ].join(' '),
        ),
        by: z
          .string()
          .describe(
            `The author of the change: the name of the token, ${authors.slice(0, -1).join(', ')} or ${authors.at(-1)}.`,
          ),
        ranBy: z
          .string()
          .optional()
          .describe(
            'Who ran the command on which host, such as `alice on ops-1`, as the client claims in `Tollgate-Ran-By`.',
          ),
        key: z.string().optional().describe('The id of the key.'),
        plan: z.string().optional().describe('The plan that was reverted or retried.'),
        figures: z
          .object({ sinceAt: instant, requests: count, refused: count })
          .optional()
          .describe(
            'The requests and refusals that the guard counted during the ten minutes before a revert.',
          ),
        files: list(z.string())
          .optional()
          .describe(
            'The names of the edited configuration files. For `reload_failed`, the files that keep their last valid content; if the load failed as a whole, the edited files.',
          ),
        editedFiles: list(
          z.object({
            name: z.string(),
            owner: z
              .string()
              .optional()
              .describe(
                'The owner of the file, as a name or, without one on the host of the gateway, as a number. The owner is not always the author of the edit.',
              ),
            modifiedAt: instant.optional(),
          }),
        )
          .optional()
          .describe(
            'The files of `files` as `process` saw them. Symbolic links are followed. A file that was removed has only its name.',
          ),
        text: z.string().describe('The change as a text.'),
        edits: list(z.string())
          .optional()
          .describe(
            'The changes of a `reload`, such as `free 60 → 50 a minute`, or `key acme plan free → pro (60 → 600 a minute)`. The texts have no secrets and no names of customers.',
          ),
        limitsBefore: z
          .object({ plans: limitsByName, keys: limitsByName })
          .optional()
          .describe(
            'The previous limits of the reverted or retried plan, or of at most 20 plans and 5 keys whose limits a `reload` changed.',
          ),
        keys: list(z.string())
          .optional()
          .describe('The ids of the first 200 keys that a `reload` added, changed or removed.'),
        inForce: z
          .object({ processes: positive, of: positive })
          .optional()
          .describe(
            'How many of the processes use the configuration of a `reload` now. Absent if none does, and if a newer entry of the page has the same configuration.',
          ),
        removedKeys: list(z.string())
          .optional()
          .describe('The ids of the first 200 keys that a `reload` removed.'),
        before: changed,
        after: changed,
        appliedLimits: z
          .object({ before: limitsOfKey, after: limitsOfKey })
          .optional()
          .describe(
            'The limits that applied to a key before and after a change of its plan or limits, without grants. Absent if a plan was not known.',
          ),
        error: z.string().optional().describe('Why the change failed, or why its outcome is unknown.'),
      }),
    ),
    next: nextPage,
  })
  .register(components, { id: 'Changes' });

export type ChangesShown = z.output<typeof changesPage>;

/** The query parameters of `/events` and `/changes`, which are lists with pages. */
export function pageOf(limitMax: number) {
  return queryOf({
    limit: wholeNumber(1, limitMax).default(50).describe('The largest number of entries.'),
    after: afterPage(cursor(/^\d{1,15}-\d{1,15}$/)),
  });
}

export const listChangesWire = (bounds: Bounds) =>
  defineWire({
    method: 'GET',
    path: '/changes',
    operationId: 'listChanges',
    tag: 'Configuration',
    summary: 'The record of changes',
    description:
      'Changes of keys, plans and the tokens of this API, reloads of the configuration and failed reloads, the newest first. Reports of several processes about the same reload within a minute are one entry. The last 20,000 changes are kept for 90 days, or without Redis as long as the process runs.',
    query: pageOf(bounds.changesPerPageMax).extend({
      key: keyId
        .optional()
        .describe(
          'Only changes of this key, and edits of files that added, changed or removed it. Of an edit of more than 200 keys, only the first 200, and the first 200 removed keys, are found.',
        ),
      by: text('the author of changes, such as alice', /^.{1,64}$/)
        .optional()
        .describe('Only changes of this author, such as the name of a token, or `file` for edits of files.'),
      from: instantParameter().optional().describe('Only changes from this time on.'),
      to: instantParameter().optional().describe('Only changes before this time.'),
    }),
    answers: { 200: { description: 'The changes.', schema: changesPage } },
  });

/** The actions that a command can report. The gateway itself records all other actions. */
const reported = keyActions.filter(
  (action) => !['ban', 'unban', 'grant', 'ungrant', 'leak', ...Object.keys(keyChanges)].includes(action),
);

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

function reportedChangeBody(membersMax: number) {
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

export const reportChangeWire = (bounds: Bounds) =>
  defineWire({
    method: 'POST',
    path: '/changes',
    operationId: 'reportChange',
    tag: 'Configuration',
    summary: 'Report the change of a command',
    description:
      'A command that has changed a key in the files of the configuration reports it here, so that the record names who made the change. A text that looks like a secret or a whole digest gets 400.',
    body: reportedChangeBody(bounds.changeMembersMax),
    answers: { 204: { description: 'The change is recorded.' } },
  });
