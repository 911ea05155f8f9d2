import { adminTokenSchema } from '../config/schema/settings-schema.ts';
import { digestSecret, issueAdminToken } from '../shared/secrets.ts';
import { CommandError } from './output/command-error.ts';

export interface MadeToken {
  readonly token: {
    readonly name: string;
    readonly may: 'read' | 'write';
    readonly sha256: string;
    /** The token itself: only seen here. */
    readonly token: string;
  };
  /** Its entry of `admin.tokens`, as it stands between brackets: `tokens: []` is what production.yaml has. */
  readonly yamlLine: string;
}

/**
 * Draws a token for the admin API. It writes no file: the settings are edited by hand.
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
  // A name such as 1234 or true needs quotes, and one in quotes is always text.
  const yamlLine = `{ name: "${name}", may: ${may}, sha256: ${entry.sha256} }`;
  return { token: { ...entry, token }, yamlLine };
}
