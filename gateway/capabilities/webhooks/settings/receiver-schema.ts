import { hash } from 'node:crypto';
import * as z from 'zod';
import { keyId } from '../../../keys/key-schema.ts';
import { adviceOnName } from '../../../shared/schema/closest-name.ts';
import { marks } from '../../../shared/schema/marks.ts';
import { expects, fields, list, text, wholeNumber } from '../../../shared/schema/schema-parts.ts';
import { type WebhookEventType, webhookEventTypes } from '../../../shared/words/event-names.js';

/** The maximum numbers of receivers, and of percentages of one receiver. Each event is stored once for each of its receivers. */
export const receiversMax = 20;
const percentagesMax = 10;
/** The maximum number of entries in each filter of a receiver. */
const filterMax = 1_000;
/** The percentages of a receiver that states none: in time to act, and at the limit. */
const defaultPercentages = [80, 100];

function filter<Entry extends z.ZodType<string>>(entry: Entry, what: string) {
  return list(entry, `a list of ${what}`)
    .min(1, expects(`a list with at least one of the ${what}`))
    .max(filterMax, expects(`a list of at most ${filterMax} ${what}`))
    .optional();
}

export const receiverUrl = text('an https URL such as https://hooks.example.com/tollgate', /^\S{1,2048}$/)
  .refine(
    (url) => URL.parse(url) !== null,
    expects('an https URL such as https://hooks.example.com/tollgate'),
  )
  .describe(
    'The URL to which the gateway posts events. It needs https, except for a loopback address. Credentials in the path or in parameters are masked wherever the gateway shows the URL.',
  )
  .register(marks, { secretInUrl: 'path' });

const receiver = fields('a receiver: a mapping with url, secretFile and events', {
  url: receiverUrl,
  secretFile: text('the path of a file with the secret')
    .describe(
      'A file with the secret that signs the deliveries, relative to this file: `whsec_` and the base64 of 24 to 64 octets. During a rotation, the file has a second line with the other secret, and each delivery has a signature for each secret. A change needs no restart.',
    )
    .register(marks, { secret: true }),
  events: list(
    z.enum(webhookEventTypes, {
      error: ({ input }) =>
        `must be the type of an event; ${adviceOnName(String(input), webhookEventTypes, 'the types')}`,
    }),
    'a list of types such as key.banned',
  )
    .min(1, expects('a list with at least one type'))
    .describe(
      'The types of the events that the receiver gets. There is no word for all types, so that a new version of the gateway sends no type that the receiver does not expect.',
    ),
  at: list(wholeNumber(1, 100), 'a list of whole percentages such as [80, 100]')
    .min(1, expects('a list with at least one percentage'))
    .max(percentagesMax, expects(`a list of at most ${percentagesMax} percentages`))
    .optional()
    .describe(
      'The percentages of a limit at which the receiver gets quota.threshold, for limits per hour, day and month. The default is [80, 100].',
    ),
  keys: filter(keyId, 'ids of keys').describe(
    'The receiver gets only events about these keys. Without this list, it gets the events of all keys.',
  ),
  plans: filter(text('the name of a plan'), 'names of plans').describe(
    'The receiver gets only events about these plans, and about keys that are on these plans at the time of the event.',
  ),
  operations: filter(text('the operationId of an operation'), 'operationIds').describe(
    'The receiver gets only events about these operations.',
  ),
});

/** The settings of webhooks. */
export const webhooksShape = {
  notify: list(receiver, 'a list of receivers, each with url, secretFile and events')
    .max(receiversMax, expects(`a list of at most ${receiversMax} receivers`))
    .default([])
    .describe(
      'The receivers of webhooks. The gateway posts events to them in the form of Standard Webhooks. A change needs no restart.',
    ),
};

/** A service that receives events by webhook. */
export interface Receiver {
  /** The first 12 hex digits of the SHA-256 digest of `url`. The id is the same in all processes. */
  readonly id: string;
  /** The path of the URL may contain a token, so no log, message or response may show more than the origin. */
  readonly url: string;
  /** One or two secrets in the form `whsec_<base64>`. The first secret is the current one. No log, message or response may show them. */
  readonly secrets: readonly string[];
  readonly events: readonly WebhookEventType[];
  /** The percentages of `quota.threshold`, ascending. The list is empty if `events` does not have `quota.threshold`. */
  readonly at: readonly number[];
  /** The receiver gets only events about these keys, plans and operations (`isWantedBy`). Absent: no filter. */
  readonly keys?: readonly string[];
  readonly plans?: readonly string[];
  readonly operations?: readonly string[];
}

/** A receiver as the operator writes it. */
export type StatedReceiver = z.output<typeof receiver>;

/** @param secrets the secrets in the file of the receiver */
export function compileReceiver(stated: StatedReceiver, secrets: readonly string[]): Receiver {
  const { url, at = defaultPercentages, keys, plans, operations } = stated;
  const events = [...new Set<WebhookEventType>(stated.events)];
  return {
    id: receiverId(url),
    url,
    secrets,
    events,
    at: events.includes('quota.threshold') ? [...new Set(at)].sort((a, b) => a - b) : [],
    ...(keys && { keys: [...new Set(keys)] }),
    ...(plans && { plans: [...new Set(plans)] }),
    ...(operations && { operations: [...new Set(operations)] }),
  };
}

function receiverId(url: string): string {
  return hash('sha256', url, 'hex').slice(0, 12);
}
