import * as z from 'zod';
import { list } from '../../keys/response-parts.ts';
import { shownMembers } from '../../keys/shown-settings.ts';
import { isSecureUrl } from '../../shared/addresses/secure-url.ts';
import { marks } from '../../shared/schema/marks.ts';
import { expects, fields, ownPath, text, word } from '../../shared/schema/schema-parts.ts';

declare module '../interfaces/configuration.ts' {
  interface StatedSettingsMembers extends z.output<z.ZodObject<typeof leaksShape>> {}
}
declare module '../../shared/model.ts' {
  interface SettingsMembers extends Omit<z.output<z.ZodObject<typeof leaksShape>>, 'leaks'> {
    readonly leaks: z.output<z.ZodObject<typeof leaksMembers>> & { readonly onLeak: OnLeak };
    /** The public keys in the file `leaks.github.keysFile`. */
    readonly githubKeys?: readonly GithubKey[] | undefined;
  }
}

type OnLeak = 'revoke' | 'report';

/** A public key with which GitHub signs its reports. */
export interface GithubKey {
  readonly identifier: string;
  /** An elliptic-curve key on P-256, as SPKI in PEM. */
  readonly pem: string;
}

const githubShape = {
  keysFile: text('the path of a file with the public keys of GitHub')
    .register(marks, { file: true })
    .optional()
    .describe(
      'A JSON file with the public keys of GitHub, in the form of https://api.github.com/meta/public_keys/secret_scanning. An edit needs no restart.',
    ),
  keysUrl: text('an https URL such as https://api.github.com/meta/public_keys/secret_scanning')
    .refine(
      isKeysUrl,
      expects(
        'an https URL such as https://api.github.com/meta/public_keys/secret_scanning, or an http URL of a loopback address',
      ),
    )
    .register(marks, { secretInUrl: 'credentials' })
    .optional()
    .describe('The URL at which GitHub publishes its public keys. The gateway follows no redirect.'),
};

const leaksMembers = {
  onLeak: word('revoke', 'report')
    .optional()
    .describe(
      'What happens when a leaked secret is reported: the secret ends (revoke, the default), or the leak is only recorded (report, the default without Redis). revoke needs `redis`. A secret that was only recorded ends when it is reported again after a change to revoke.',
    ),
  github: fields('a mapping with either keysFile or keysUrl', githubShape)
    .refine(
      ({ keysFile, keysUrl }) => (keysFile === undefined) !== (keysUrl === undefined),
      expects('a mapping with either keysFile or keysUrl'),
    )
    .meta({ oneOf: [{ required: ['keysFile'] }, { required: ['keysUrl'] }] })
    .optional()
    .describe(
      'The public keys with which GitHub signs its reports, either as `keysFile` or as `keysUrl`. Without Redis, they need `onLeak: report`.',
    ),
};

export const leaksShape = {
  leaksPath: ownPath('/leaks')
    .optional()
    .describe(
      'The path that accepts reports of GitHub about leaked secrets. It does not get the prefix of the base URL. Needs `leaks.github`.',
    ),
  leaks: fields('a mapping with onLeak and github', leaksMembers)
    .prefault({})
    .describe('Secrets that were found where everyone can read them.'),
};

export const leaksShown = {
  leaks: (stated: Readonly<Record<string, z.ZodType>>) =>
    z.object({
      ...stated,
      onLeak: z.enum(['revoke', 'report']).describe('What happens with a leaked secret.'),
      github: z
        .object({
          ...shownMembers(githubShape),
          keys: list(
            z.object({
              identifier: z.string(),
              digestStart: z
                .string()
                .describe('The first digits of the SHA-256 digest of the public key in PEM.'),
            }),
          )
            .optional()
            .describe('The public keys of the file; absent if the gateway fetches the keys.'),
        })
        .optional(),
    }),
};

/** Whether the gateway may fetch public keys from a URL. Without TLS, another host could replace the keys. */
function isKeysUrl(value: string): boolean {
  const url = URL.parse(value);
  return url !== null && !/[#@]/.test(value) && isSecureUrl(url);
}
