import { hash, randomBytes } from 'node:crypto';
import { crc32 } from 'node:zlib';

const alphabet = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz';
const randomCharacters = 40;
const checksumCharacters = 6;
/** Of a digest, in the log, the admin API and on pages. */
const digestDigitsShown = 8;
/** Larger bytes are skipped: 256 is no multiple of 62, so they would make the first letters of the alphabet more likely. */
const unbiasedBelow = 248;

/**
 * Draws a secret: `tg_`, 40 random characters (238 bits), and their CRC-32 in base62, by which a scanner for leaked
 * secrets recognises one without asking the gateway.
 *
 * @param drawBytes a source of random bytes; every call must give new ones
 */
export function issueSecret(drawBytes: DrawBytes = randomBytes): string {
  return `tg_${drawWithChecksum(drawBytes)}`;
}

/** Draws a token for the admin API: the same behind `tga_`, so that neither is taken for the other. */
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

/** Whether the last characters of a secret or token fit the others; those that were not drawn here have no such characters. */
export function hasRightChecksum(secret: string): boolean {
  const drawn = /^tga?_([0-9A-Za-z]{40})([0-9A-Za-z]{6})$/.exec(secret);
  return drawn !== null && checksumOf(drawn[1] ?? '') === drawn[2];
}

/** The hex SHA-256 digest of all characters of a secret or token: all that the configuration keeps of it. */
export function digestSecret(secret: string): string {
  return hash('sha256', secret, 'hex');
}

/** The first digits of a digest: enough to tell the secrets of a key apart, and too little to find one by. */
export function digestStart(digest: string): string {
  return digest.slice(0, digestDigitsShown);
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
