import { adminTokenSchema } from '../config/schema/settings-schema.ts';
import { digestSecret, issueAdminToken } from '../shared/secrets.ts';
import { CommandError } from './output/command-error.ts';

export interface MadeToken {
  readonly token: {
    readonly name: string;
    readonly may: 'read' | 'write';
    readonly sha256: string;
    /** The token itself. Only its digest is kept. */
    readonly token: string;
  };
  /** The entry for the brackets of `admin.tokens: []`. */
  readonly yamlLine: string;
}

/**
 * Makes a token for the admin API. The operator adds its entry to the settings by hand.
 *
 * @throws a CommandError when the name cannot be one
 */
export function createAdminToken({
  name,
  may,
}: {
  readonly name: string;
  readonly may: 'read' | 'write';
}): MadeToken {
  const token = issueAdminToken();
  const entry = { name, sha256: digestSecret(token), may };
  const issue = adminTokenSchema.safeParse(entry).error?.issues[0];
  if (issue !== undefined) throw new CommandError(`--${issue.path.join('.')} ${issue.message}.`);
  // Without quotes, YAML would read a name such as 1234 or true as another type.
  const yamlLine = `{ name: "${name}", may: ${may}, sha256: ${entry.sha256} }`;
  return { token: { ...entry, token }, yamlLine };
}
