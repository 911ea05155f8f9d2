import * as z from 'zod';
import { components, digestStart as digestStartShown, list, words } from '../../../keys/response-parts.ts';
import { defineWire } from '../../../shared/http/wire.ts';
import { digestOf, expects, list as listOf } from '../../../shared/schema/schema-parts.ts';

/** The largest number of secrets in a report to the admin API. */
export const leakSecretsMax = 1_000;

/** The response to a report, in the form of GitHub's feedback, with the key of each known secret. */
const judgedSecrets = list(
  z.object({
    token_hash: z.string().describe('The SHA-256 digest of the secret, in hex.'),
    token_type: z.string().describe('The `type` of the entry, or an empty text.'),
    label: words('true_positive', 'false_positive').describe(
      '`true_positive`: the key of the secret is known.',
    ),
    key: z.string().optional().describe('The id of the key.'),
    ended: z.boolean().optional().describe('Whether the secret is refused because it leaked.'),
    descendants: list(digestStartShown)
      .optional()
      .describe(
        'The secrets that ended too, because the holder of the key issued them from this secret, directly or through others.',
      ),
  }),
).register(components, { id: 'JudgedSecrets' });

export type JudgedSecrets = z.output<typeof judgedSecrets>;

export const reported = z
  .object(
    {
      token: z.string().min(1, expects('a secret')).optional().describe('The secret. It is not stored.'),
      sha256: digestOf('secret').optional(),
      type: z.string().optional(),
      url: z.string().optional(),
      source: z.string().optional(),
    },
    expects('an object with token or sha256'),
  )
  .refine(
    ({ token, sha256 }) => (token === undefined) !== (sha256 === undefined),
    'must have either `token` or `sha256`',
  );

/** The form of GitHub's reports. An entry may have the digest of the secret as `sha256` in place of `token`. Other members are ignored. */
const what = `a list of 1 to ${leakSecretsMax} leaked secrets`;
const leaksBody = listOf(reported, what).min(1, expects(what)).max(leakSecretsMax, expects(what));

export const reportLeaksWire = defineWire({
  method: 'POST',
  path: '/leaks',
  operationId: 'reportLeaks',
  tag: 'Keys',
  summary: 'Report leaked secrets',
  description: `The body has the form of GitHub's reports. An entry has either the secret as \`token\`, or its digest as \`sha256\`. The response has a judgement for each entry, in the same order. While Redis replies, a leaked secret, and the secrets that the holder of the key issued from it, end at once on every process. The other secrets of the key stay valid. With the setting \`leaks.onLeak: report\`, which is the default without Redis, the leak is only recorded. A report can be sent again.`,
  body: leaksBody,
  answers: {
    200: {
      description: 'The judgements.',
      schema: judgedSecrets,
    },
  },
});
