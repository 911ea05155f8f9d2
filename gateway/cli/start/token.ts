import { adminTokenSchema } from '../../config/schema/settings-schema.ts';
import { digestSecret, issueAdminToken } from '../../shared/secrets.ts';
import { CommandError } from '../output/command-error.ts';

export interface TokenOptions {
  readonly name: string;
  readonly may: 'read' | 'write';
  readonly json?: true;
}

/** Prints a new token for the admin API, and its entry for `admin.tokens`. */
export function makeToken(options: TokenOptions): void {
  const token = issueAdminToken();
  const entry = { name: options.name, sha256: digestSecret(token), may: options.may };
  const issue = adminTokenSchema.safeParse(entry).error?.issues[0];
  if (issue !== undefined) throw new CommandError(`--${issue.path.join('.')} ${issue.message}.`);
  if (options.json) console.log(JSON.stringify({ ...entry, token }));
  else {
    console.error(
      'Add the first line to `admin: { tokens: [ … ] }` of the configuration (in a list with one entry a line, after "- "). The second line is the token, which is shown only now:',
    );
    // Without quotes, YAML would read a name such as 1234 or true as another type.
    console.log(`{ name: "${entry.name}", may: ${entry.may}, sha256: ${entry.sha256} }\n${token}`);
  }
}
