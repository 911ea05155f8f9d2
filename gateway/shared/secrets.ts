import { hash, randomBytes } from 'node:crypto';
import { crc32 } from 'node:zlib';

const alphabet = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz';
const randomCharacters = 40;
const checksumCharacters = 6;
/** The number of digits of a digest that the log, the admin API and pages show. */
const digestDigitsShown = 8;
/**
 * A random octet is used only if it is below this value. Without this rule, the first letters would be more likely, because 256 is not a
 * multiple of 62.
 */
const unbiasedBelow = 248;

/**
 * Generates a secret: `tg_`, 40 random characters (238 bits), and their CRC-32 in base62. Scanners for leaked secrets recognise a secret by
 * its checksum.
 *
 * @param drawBytes a source of random bytes; every call must return new bytes
 */
export function issueSecret(drawBytes: DrawBytes = randomBytes): string {
  return `tg_${drawWithChecksum(drawBytes)}`;
}

/** Generates a token for the admin API. The token begins with `tga_`, so that it is not mistaken for a key's secret. */
export function issueAdminToken(drawBytes: DrawBytes = randomBytes): string {
  return `tga_${drawWithChecksum(drawBytes)}`;
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

/** Whether a text is a secret or token that Tollgate has created, with a correct checksum. */
export function hasRightChecksum(secret: string): boolean {
  const drawn = /^tga?_([0-9A-Za-z]{40})([0-9A-Za-z]{6})$/.exec(secret);
  return drawn !== null && checksumOf(drawn[1] ?? '') === drawn[2];
}

/** Whether a text begins like a secret of a key, and `issueSecret` cannot have issued it. */
export function isInventedSecret(presented: string): boolean {
  return presented.startsWith('tg_') && !hasRightChecksum(presented);
}

/** The hex SHA-256 digest of a secret or token. The configuration contains only this digest, not the secret. */
export function digestSecret(secret: string): string {
  return hash('sha256', secret, 'hex');
}

/** The first digits of a digest: enough to distinguish the secrets of a key, too few to find a secret. */
export function digestStart(digest: string): string {
  return digest.slice(0, digestDigitsShown);
}

/** Matches a secret, a token, a secret of webhooks, a complete digest, and the user information of a URL. */
const secretLike =
  /\btga?_\w{20,}|\bwhsec_[\w+/=-]+|(?<![0-9a-f])[0-9a-f]{64}(?![0-9a-f])|(?<=:\/\/)[^\s/@]+(?=@)/gi;

/** Replaces each part of a text that may be a secret, a complete digest, or the password of a URL. */
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
