import * as z from 'zod';
import { components, digestStart, instant, list } from '../../../keys/response-parts.ts';

declare module '../../../shared/model.ts' {
  interface KeyMembers extends z.output<z.ZodObject<typeof linksShape>> {}
}

export const linkShown = z
  .object({
    digestStart: digestStart.describe('The first digits of the SHA-256 digest of the token in the link.'),
    by: z.string().describe('The name of the token of this API that made the link.'),
    createdAt: instant,
    untilAt: instant,
  })
  .register(components, { id: 'Link' });

export type LinksMember = z.output<typeof linkShown>;

/** The member of a key in responses to operators and to the holder of the key. */
export const linksShape = {
  links: list(linkShown)
    .optional()
    .describe(
      'The links to the page of the key that have not ended, the earliest end first. Absent without `limitsPath` or Redis, and if they cannot be read.',
    ),
};
