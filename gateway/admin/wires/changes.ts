import * as z from 'zod';
import { keyActions } from '../../fleet/changes.ts';
import { eventGroups } from '../../fleet/kinds/kind.ts';
import { eventKinds } from '../../fleet/kinds/kinds.ts';
import { keyId } from '../../keys/key-schema.ts';
import {
  cursor,
  instantParameter,
  queryOf,
  someOf,
  wholeNumber,
} from '../../shared/schema/query-parameters.ts';
import { expects, fields, membersByName, text } from '../../shared/schema/schema-parts.ts';
import type { Bounds } from '../../shared/timeouts-and-sizes.ts';
import { changesPage, eventsPage } from '../api/fleet/changes-view.ts';
import { defineWire } from './wire.ts';

/** The query parameters of `/events` and `/changes`, which are lists with pages. */
function pageOf(limitMax: number) {
  return queryOf({
    limit: wholeNumber(1, limitMax).default(50).describe('The largest number of entries.'),
    after: cursor(/^\d{1,15}-\d{1,15}$/)
      .optional()
      .describe('The `next` of the previous page.'),
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
      'Changes of keys, reloads of the configuration with their changes to the tokens of this API, and failed reloads, the newest first. If several processes report a change of the same files within a minute, the list has one entry. The last 10,000 changes are kept for 90 days, or without Redis as long as the process runs.',
    query: pageOf(bounds.changesPerPageMax),
    answers: { 200: { description: 'The changes.', schema: changesPage } },
  });

export const listEventsWire = (bounds: Bounds) =>
  defineWire({
    method: 'GET',
    path: '/events',
    operationId: 'listEvents',
    tag: 'Fleet',
    summary: 'Recent events',
    description:
      'Bans and their ends, changes of keys, outages of Redis, unhealthy targets, expiring certificates, pauses of the usage record, and reloads, the newest first. An event that several processes report is listed once. An outage that has ended is one event, with its beginning and its end. The last 2,000 events are kept for 7 days, or without Redis as long as the process runs. If many events of one kind occur at the same time, the first events are listed, and one entry counts the other events.',
    query: pageOf(bounds.eventsPerPageMax).extend({
      kind: someOf([...eventGroups, ...eventKinds])
        .optional()
        .describe(
          'Kinds of events, separated by commas. `incident` stands for all failures, `ban` for bans and their ends, and `change` for changes that an operator made. An outage that has ended also matches the kind of its beginning.',
        ),
      from: instantParameter()
        .optional()
        .describe('Only events that had not ended before this time. A date means 00:00 UTC.'),
      to: instantParameter().optional().describe('Only events that began before this time.'),
    }),
    answers: { 200: { description: 'The events.', schema: eventsPage } },
  });

/** The actions that a command can report. The gateway itself records all other actions. */
const reported = keyActions.filter(
  (action) => !['unban', 'grant', 'ungrant', 'leak', 'makegood'].includes(action),
);

/** Matches a secret, a token or a complete digest, which the record of changes must not contain. */
const secretLike = /\btga?_\w{20}|(?<![0-9a-f])[0-9a-f]{64}(?![0-9a-f])/i;

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
