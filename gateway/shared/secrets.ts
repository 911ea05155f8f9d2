import { hash, randomBytes } from 'node:crypto';
import { crc32 } from 'node:zlib';

const alphabet = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz';
const randomCharacters = 40;
const checksumCharacters = 6;
/** In the log, the admin API and pages. */
const digestDigitsShown = 8;
/**
 * Random octets from this value on are not used. With them, the first letters would be more likely, because 256 is not a multiple of 62.
 */
const unbiasedBelow = 248;

/**
 * `tg_`, 40 random characters (238 bits), and their CRC-32 in base62, by which scanners recognise a leaked secret. @param drawBytes returns
 * new random bytes at every call
 */
export function issueSecret(drawBytes: DrawBytes = randomBytes): string {
  return `tg_${drawWithChecksum(drawBytes)}`;
}

/** A token for the admin API begins with `tga_`, so that it is not mistaken for a key's secret. */
export function issueAdminToken(drawBytes: DrawBytes = randomBytes): string {
  return `tga_${drawWithChecksum(drawBytes)}`;
}

/** The part of a link to a key holder's page that opens it. It begins with `tgl_`, so that it is not mistaken for a key's secret. */
export function issueLinkToken(drawBytes: DrawBytes = randomBytes): string {
  return `tgl_${drawWithChecksum(drawBytes)}`;
}

type DrawBytes = (count: number) => Uint8Array;

function drawWithChecksum(drawBytes: DrawBytes): string {
  let random = '';
  while (random.length < randomCharacters) {
    for (const byte of drawBytes(randomCharacters)) {
      if (byte < unbiasedBelow && random.length < randomCharacters)
        random += alphabet[byte % alphabet.length];
    }
  }
  return `${random}${checksumOf(random)}`;
}

/** For secrets, admin tokens and tokens of links. */
export function hasRightChecksum(secret: string): boolean {
  const drawn = /^tg[al]?_([0-9A-Za-z]{40})([0-9A-Za-z]{6})$/.exec(secret);
  return drawn !== null && checksumOf(drawn[1] ?? '') === drawn[2];
}

/** Whether it begins like a secret of a key, and `issueSecret` cannot have issued it. */
export function isInventedSecret(presented: string): boolean {
  return presented.startsWith('tg_') && !hasRightChecksum(presented);
}

/** Hex SHA-256. The configuration contains only this digest of a secret or token. */
export function digestSecret(secret: string): string {
  return hash('sha256', secret, 'hex');
}

/** Enough to distinguish the secrets of a key, too few to find a secret. */
export function digestStart(digest: string): string {
  return digest.slice(0, digestDigitsShown);
}

/** Matches a secret, a token, a secret of webhooks, a complete digest, and the user information of a URL. */
const secretLike =
  /\btg[al]?_\w{20,}|\bwhsec_[\w+/=-]+|(?<![0-9a-f])[0-9a-f]{64}(?![0-9a-f])|(?<=:\/\/)[^\s/@]+(?=@)/gi;

export function maskSecrets(text: string): string {
  return text.replace(secretLike, '***');
}

function checksumOf(random: string): string {
  let rest = crc32(random);
  let checksum = '';
  for (let i = 0; i < checksumCharacters; i++) {
    checksum = (alphabet[rest % alphabet.length] ?? '') + checksum;
    rest = Math.floor(rest / alphabet.length);
  }
  return checksum;
}
