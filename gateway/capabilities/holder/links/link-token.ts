import { digestSecret, hasRightChecksum, issueLinkToken } from '../../../shared/secrets.ts';

/** A token that a client presents. Whether the link exists is not known yet. */
export interface PresentedLink {
  readonly keyId: string;
  /** The hex SHA-256 of the whole token. */
  readonly digest: string;
}

/**
 * Issues the token of a link: `tgl_` with a checksum, a point, and the id of the key in base64url. The id says where the link is stored. Its
 * encoding has no characters at which programs that find addresses in texts end an address.
 */
export function issueToken(keyId: string): string {
  return `${issueLinkToken()}.${Buffer.from(keyId).toString('base64url')}`;
}

/** Whether a text begins like the token of a link. Secrets of keys that Tollgate issues begin differently. */
export function isLinkToken(authorization: string | undefined): boolean {
  return /^bearer +tgl_/i.test(authorization ?? '');
}

/** The token with an id of at most 100 characters (`keyIdPattern`). */
const tokenForm = /^bearer +((tgl_[0-9A-Za-z]{46})\.([\w-]{2,134})) *$/i;

/** @returns undefined for a text that `issueToken` cannot have issued, which is refused without a look-up */
export function parseLink(authorization: string | undefined): PresentedLink | undefined {
  const [, token = '', drawn = '', id = ''] = tokenForm.exec(authorization ?? '') ?? [];
  if (!hasRightChecksum(drawn)) return undefined;
  return { keyId: Buffer.from(id, 'base64url').toString(), digest: digestSecret(token) };
}
