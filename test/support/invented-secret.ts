import { issueSecret } from '../../gateway/shared/secrets.ts';

/** Makes a secret with the prefix `tg_` and a wrong checksum. The default is a new secret with another last character. */
export function inventedSecret(issued = issueSecret()): string {
  return issued.slice(0, -1) + (issued.endsWith('0') ? '1' : '0');
}
