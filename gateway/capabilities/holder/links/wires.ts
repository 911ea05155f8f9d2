import * as z from 'zod';
import { components, digestStart, list } from '../../../keys/response-parts.ts';
import { defineWire, keyIdParameter } from '../../../shared/http/wire.ts';
import { parseDuration } from '../../../shared/schema/dates-and-durations.ts';
import { fields, text } from '../../../shared/schema/schema-parts.ts';
import { linkShown } from './link-shape.ts';

const linkBody = fields('an object with for', {
  for: text('a duration of at least a second, such as 7d, 12h or 30m', /^[1-9]\d{0,5}[smhd]$/)
    .transform(parseDuration)
    .describe('The time for which the link opens the page, at most 30 days.'),
});

const madeLink = z
  .object({
    id: z.string().describe('The id of the key.'),
    url: z.string().describe('The link. Only this response contains it.'),
    link: linkShown,
  })
  .register(components, { id: 'MadeLink' });

const linksOfKey = z
  .object({
    id: z.string().describe('The id of the key.'),
    ended: list(digestStart)
      .optional()
      .describe('The links that the request has ended. Present only in responses to DELETE.'),
    links: list(linkShown).describe('The links of the key that have not ended, the earliest end first.'),
  })
  .register(components, { id: 'LinksOfKey' });

export type LinksOfKeyShown = z.output<typeof linksOfKey>;

const params = { id: keyIdParameter };
const linksAnswer = { 200: { description: 'The links of the key.', schema: linksOfKey } } as const;

export const linkKeyWire = defineWire({
  method: 'POST',
  path: '/keys/{id}/links',
  operationId: 'linkKey',
  tag: 'Keys',
  summary: 'Make a link to the page of a key holder',
  description:
    'Whoever has the link can read the limits and the usage of the key on the page at `limitsPath`, without a secret of the key, from every address that the key allows. A link cannot get a new secret, and no request to the API succeeds with it. It ends at its time, when it is removed, and when the key is deleted. While the key is disabled or has no valid secret, the link does not open the page. A key has at most 10 links. Without `limitsPath` or without Redis, the response is 409.',
  params,
  body: linkBody,
  answers: { 201: { description: 'The link.', schema: madeLink } },
});

export const listLinksWire = defineWire({
  method: 'GET',
  path: '/keys/{id}/links',
  operationId: 'listLinks',
  tag: 'Keys',
  summary: 'The links to the page of a key holder',
  description: 'The links that have not ended, each with the beginning of its digest.',
  params,
  answers: linksAnswer,
});

export const unlinkKeyWire = defineWire({
  method: 'DELETE',
  path: '/keys/{id}/links/{digest}',
  operationId: 'unlinkKey',
  tag: 'Keys',
  summary: 'End a link to the page of a key holder',
  description:
    'Every process refuses the next request with the link. If the digests of several links begin with these digits, the response is 409.',
  params: {
    ...params,
    digest: z
      .string()
      .regex(/^[0-9A-Fa-f]{8,64}$/)
      .describe('The first 8 or more hex digits of the SHA-256 digest of the token in the link.'),
  },
  answers: linksAnswer,
});

export const unlinkAllWire = defineWire({
  method: 'DELETE',
  path: '/keys/{id}/links',
  operationId: 'unlinkAll',
  tag: 'Keys',
  summary: 'End all links to the page of a key holder',
  description: 'Every process refuses the next request with one of the links.',
  params,
  answers: linksAnswer,
});
