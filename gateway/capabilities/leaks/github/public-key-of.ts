import { createPublicKey, type KeyObject } from 'node:crypto';

/** @returns undefined if the text is not a public key on the curve P-256 */
export function publicKeyOf(pem: string): KeyObject | undefined {
  // `createPublicKey` also accepts a private key, which must not be in such a list.
  if (!pem.trimStart().startsWith('-----BEGIN PUBLIC KEY-----')) return undefined;
  try {
    const key = createPublicKey(pem);
    return key.asymmetricKeyDetails?.namedCurve === 'prime256v1' ? key : undefined;
  } catch {
    return undefined;
  }
}
