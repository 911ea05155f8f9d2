import * as z from 'zod';
import type { Kind, Webhook } from '../../../gateway/fleet/kinds/kind.ts';
import {
  eventKinds,
  exampleNotices,
  kindOf,
  kindsByType,
  listedKind,
  type Notice,
} from '../../../gateway/fleet/kinds/kinds.ts';
import { webhookEventTypes } from '../../../gateway/shared/words/event-names.js';
import { type JsonSchema, memberBullets } from './json-schema.ts';
import { bullet, code, codeBlock, page, pageHead } from './markdown.ts';

/** The time of the examples. */
const exampleMs = Date.UTC(2026, 10, 25, 12);

/**
 * The events that receivers of webhooks get, and the events in the list of events. A generated page has no link to the page of a capability,
 * which may be deleted.
 */
export function eventsPage(): string {
  const typesOf = Map.groupBy(exampleNotices(exampleMs), ({ kind }) => kind);
  return page([
    pageHead('Events', '`gateway/fleet/kinds/` and the capabilities'),
    'Some events are posted to the receivers of webhooks, some are in the list (`/api/v1/events` and the page Events), and many are both.',
    '## Webhooks',
    'The data of each type, with an example of a whole body. Every event also has `text`, the event in one sentence, and `notListed`, the number of list entries that were omitted, if there are any. New versions may add members.',
    ...webhookEventTypes.flatMap(typeParts),
    '## The list of events',
    'The parameter `kind` of `/api/v1/events` selects a group (`incident`, `ban` or `change`) or a kind.',
    eventKinds
      .map((name) => {
        const { group, many } = listedKind(name).list;
        const types = new Set(
          (typesOf.get(name) ?? []).map((notice) => code(kindOf(notice).webhook?.typeOf(notice) ?? '')),
        );
        const sent = types.size === 0 ? '' : ` Webhook: ${[...types].join(', ')}.`;
        return bullet(`${code(name)} (${group}): ${many}.${sent}`);
      })
      .join('\n'),
  ]);
}

function typeParts(type: (typeof webhookEventTypes)[number]): readonly (string | undefined)[] {
  const kind = kindsByType.get(type);
  const example = exampleNotices(exampleMs).find(
    (notice) => kindOf(notice) === kind && kind?.webhook?.typeOf(notice) === type,
  );
  if (kind?.webhook === undefined || example === undefined) throw new Error(`${type} has no example`);
  const first = webhookEventTypes.find((one) => kindsByType.get(one) === kind);
  return [
    `### ${code(type)}`,
    kind.webhook.when[type],
    first === undefined || first === type
      ? membersText(kind.webhook)
      : `Its members are those of ${code(first)}.`,
    codeBlock(JSON.stringify(bodyOf(type, kind, example))),
  ];
}

function membersText({ data }: Webhook<Notice>): string {
  const { properties, ...schema } = z.toJSONSchema(data(z), { io: 'input' }) as JsonSchema;
  const { text: _, notListed: __, ...own } = properties ?? {};
  return memberBullets({ ...schema, properties: own }).join('\n');
}

function bodyOf(type: string, kind: Kind<Notice>, notice: Notice) {
  const { notListed: _, ...members } = kind.webhook?.members(notice) ?? {};
  const data = { ...members, text: kind.text(notice, exampleMs) };
  return { type, timestamp: new Date(exampleMs).toISOString(), data };
}
