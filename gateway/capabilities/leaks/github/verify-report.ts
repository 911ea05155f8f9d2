import { createVerify, type KeyObject } from 'node:crypto';

/** The header fields with which GitHub signs a report. */
export interface ReportSignature {
  readonly identifier: string;
  /** The ECDSA signature in DER. */
  readonly signature: Buffer;
}

/** Matches a signature of P-256 in base64. In DER, such a signature has 8 to 72 octets. */
const signatureForm = /^[A-Za-z0-9+/]{11,96}={0,2}$/;
const identifierForm = /^[\x21-\x7e]{1,200}$/;

/** Reads the signature of a report; undefined if a field is missing or malformed. */
export function signatureOf(
  headers: Readonly<Record<string, string | string[] | undefined>>,
): ReportSignature | undefined {
  const identifier = headers['github-public-key-identifier'];
  const signature = headers['github-public-key-signature'];
  if (typeof identifier !== 'string' || typeof signature !== 'string') return undefined;
  if (!identifierForm.test(identifier) || !signatureForm.test(signature)) return undefined;
  return { identifier, signature: Buffer.from(signature, 'base64') };
}

/** Verifies the signature of a body that arrives in parts. The signature covers the raw octets of the body. */
export function createVerification({ signature }: ReportSignature, key: KeyObject) {
  const verify = createVerify('sha256');
  return {
    add(part: Buffer): void {
      verify.update(part);
    },
    /** Called once, after the last part. */
    isValid: (): boolean => verify.verify(key, signature),
  };
}
