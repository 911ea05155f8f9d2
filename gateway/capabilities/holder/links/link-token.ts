import { keyIdPattern } from '../../../shared/model.ts';
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

/** Whether a request presents a text that begins like the token of a link, for the message of its refusal. */
export function isLinkToken(authorization: string | undefined): boolean {
  return /^bearer +tgl_/i.test(authorization ?? '');
}

/** The token of a link. The base64url of an id (`keyIdPattern`) has at most 134 characters. */
const tokenForm = /^bearer +((tgl_[0-9A-Za-z]{46})\.([\w-]{2,134})) *$/i;

/** @returns undefined for a text that `issueToken` cannot have issued, which is perhaps a secret of a key of the configuration */
export function parseLink(authorization: string | undefined): PresentedLink | undefined {
  const [, token = '', drawn = '', id = ''] = tokenForm.exec(authorization ?? '') ?? [];
  const keyId = Buffer.from(id, 'base64url').toString();
  if (!hasRightChecksum(drawn) || !keyIdPattern.test(keyId)) return undefined;
  return { keyId, digest: digestSecret(token) };
}
