import * as z from 'zod';
import { sharedParameters } from '../../shared/schema/query-parameters.ts';

/** The header field in which a command names the person who ran it. Requests that make a change may have it. */
export const ranByField = 'Tollgate-Ran-By';

const charsMax = 100;

export const ranByFault = `The header field ${ranByField} must be a text of 1 to ${charsMax} printable characters of ASCII, without a secret and without a whole digest.`;

/** Matches a secret, a token or a complete digest, which the record of changes must not contain. */
export const secretLike = /\btga?_\w{20}|(?<![0-9a-f])[0-9a-f]{64}(?![0-9a-f])/i;

export const ranBySchema = z
  .string()
  .max(charsMax)
  .regex(/^[\x21-\x7e](?:[\x20-\x7e]*[\x21-\x7e])?$/)
  .refine((stated) => !secretLike.test(stated))
  .describe(
    'The person who ran the command and the host of the command, such as `alice on ops-1`. The record of changes shows it as a claim of the client; the author is the token.',
  )
  .register(sharedParameters, { id: 'ranBy' });
