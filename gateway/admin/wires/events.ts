import * as z from 'zod';
import { eventGroups } from '../../fleet/kinds/kind.ts';
import { eventKinds } from '../../fleet/kinds/kinds.ts';
import {
  components,
  instant,
  isComplete,
  list,
  missing,
  nextPage,
  positive,
  words,
} from '../../keys/response-parts.ts';
import { defineWire } from '../../shared/http/wire.ts';
import { instantParameter, someOf } from '../../shared/schema/query-parameters.ts';
import type { Bounds } from '../../shared/timeouts-and-sizes.ts';
import { listedShape, pageOf } from './changes.ts';

export const listEventsWire = (bounds: Bounds) =>
  defineWire({
    method: 'GET',
    path: '/events',
    operationId: 'listEvents',
    tag: 'Fleet',
    summary: 'Recent events',
    description:
      'Incidents, bans and changes, the newest first. Reports of several processes about one event, and the beginning and the end of an outage, are usually one entry. The last 2,000 events are kept for 7 days, or without Redis as long as the process runs. If many events of one kind occur at the same time, only the first are listed, and entries with `count` stand for the others.',
    query: pageOf(bounds.eventsPerPageMax).extend({
      kind: someOf([...eventGroups, ...eventKinds])
        .optional()
        .describe(
          'Kinds of events, separated by commas. `incident` stands for failures, their ends and warnings, `ban` for bans and their ends, and `change` for changes of keys, plans and the configuration. An outage that has ended also matches the kind of its beginning.',
        ),
      from: instantParameter()
        .optional()
        .describe(
          'Only events at or after this time. An outage that has ended has the time at which its end was reported.',
        ),
      to: instantParameter().optional().describe('Only events that began before this time.'),
    }),
    answers: { 200: { description: 'The events.', schema: eventsPage } },
  });

const eventsPage = z
  .object({
    isComplete,
    missing,
    events: list(
      z.object({
        ...listedShape,
        kind: words(...eventKinds),
        group: words(...eventGroups).describe(
          '`incident`: a failure, its end, a warning, or the revert of a plan. `ban`: a ban or its end. `change`: a change of a key or plan, or a reload, also a failed one.',
        ),
        text: z.string().describe('The event as a text. Times are in UTC.'),
        beganAt: instant.optional().describe('The beginning of an outage that has ended.'),
        endedAt: instant
          .optional()
          .describe('The end of the failures of an upstream, which is reported later, at `at`.'),
        server: z.string().optional().describe('The server of a Redis Cluster.'),
        key: z.string().optional().describe('The id of the key.'),
        plan: z.string().optional(),
        upstream: z.string().optional(),
        target: z.string().optional(),
        untilAt: instant.optional().describe('The planned end of the ban, or the expiry of the certificate.'),
        count: positive
          .optional()
          .describe(
            'The number of further events of this kind for which this entry stands; absent for a single event.',
          ),
      }),
    ),
    next: nextPage,
  })
  .register(components, { id: 'Events' });
