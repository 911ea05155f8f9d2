import * as z from 'zod';
import { keyId } from '../../../keys/key-schema.ts';
import { digestStart, list as responseList } from '../../../keys/response-parts.ts';
import { adviceOnName } from '../../../shared/schema/closest-name.ts';
import { marks } from '../../../shared/schema/marks.ts';
import { expects, fields, list, text, wholeNumber } from '../../../shared/schema/schema-parts.ts';
import { webhookEventTypes } from '../../../shared/words/event-names.js';

/** The maximum numbers of receivers, and of percentages of one receiver. Each event is stored once for each of its receivers. */
const receiversMax = 20;
const percentagesMax = 10;
/** The maximum number of entries in each filter of a receiver. */
const filterMax = 1_000;

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
    'The URL to which the gateway posts events. It needs https, except for a loopback address. A user, a password and a fragment are refused. The path and the parameters are masked wherever the gateway shows the URL.',
  )
  .register(marks, { secretInUrl: 'path' });

const receiver = fields('a receiver: a mapping with url, secretFile and events', {
  url: receiverUrl,
  secretFile: text('the path of a file with the secret')
    .describe(
      'A file with the secret that signs the deliveries: `whsec_` and the base64 of 24 to 64 octets. During a rotation, the file has a second line with the other secret, and each delivery has a signature for each secret. A change needs no restart.',
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
    .describe('The types of the events that the receiver gets, from the reference of events.'),
  at: list(wholeNumber(1, 100), 'a list of whole percentages such as [80, 100]')
    .min(1, expects('a list with at least one percentage'))
    .max(percentagesMax, expects(`a list of at most ${percentagesMax} percentages`))
    .optional()
    .describe(
      'The percentages of a limit at which the receiver gets quota.threshold, for limits per hour, day and month. The default is [80, 100].',
    ),
  keys: filter(keyId, 'ids of keys').describe(
    'The receiver gets only events about these keys. An event without a key, such as an import, does not match. An event must match each stated filter (`keys`, `plans`, `operations`).',
  ),
  plans: filter(text('the name of a plan'), 'names of plans').describe(
    'The receiver gets only events about these plans, and about keys that are on these plans at the time of the event.',
  ),
  operations: filter(text('the operationId of an operation'), 'operationIds').describe(
    'The receiver gets only `operation.sunset` of these operations. Its `callers` are the keys of all customers.',
  ),
});

export const webhooksShape = {
  notify: list(receiver, 'a list of receivers, each with url, secretFile and events')
    .max(receiversMax, expects(`a list of at most ${receiversMax} receivers`))
    .default([])
    .describe(
      'The receivers of webhooks. The gateway posts events to them in the form of Standard Webhooks. They need `redis`. A change needs no restart.',
    ),
};

/** A receiver as the operator writes it. */
export type StatedReceiver = z.output<typeof receiver>;

declare module '../../interfaces/configuration.ts' {
  interface StatedSettingsMembers extends z.output<z.ZodObject<typeof webhooksShape>> {}
}

/** The schema of the receivers in `/settings`. @param entry the stated members of a receiver, with their masks */
export const receiversShown = {
  notify: (entry: Readonly<Record<string, z.ZodType>>) =>
    responseList(
      z.object({
        id: z
          .string()
          .describe('The id of the receiver: the first 12 hex digits of the SHA-256 digest of its URL.'),
        ...entry,
        secretDigestStarts: responseList(digestStart),
      }),
    ).describe('The receivers of webhooks.'),
};
