import { createPrivateKey, type KeyObject, X509Certificate } from 'node:crypto';
import { createSecureContext, type SecureContextOptions } from 'node:tls';
import { type Problem, wholeFile } from '../../problems/problem.ts';

const certificateBegin = '-----BEGIN CERTIFICATE-----';
const certificateBlock = /-----BEGIN CERTIFICATE-----[^-]+-----END CERTIFICATE-----/g;

/** At least one certificate, or an error message that does not quote the text, which may be a private key in the wrong place. */
export function parseCertificates(text: string): readonly X509Certificate[] | string {
  const begun = text.split(certificateBegin).length - 1;
  if (begun === 0) {
    const hint = text.includes('PRIVATE KEY-----')
      ? '; it has a private key: are `cert` and `key` exchanged?'
      : '';
    return `this file has no certificate in PEM (${certificateBegin})${hint}`;
  }
  const cutOff = 'a certificate of this file cannot be read; is it cut off?';
  const blocks = text.match(certificateBlock) ?? [];
  if (blocks.length !== begun) return cutOff;
  try {
    return blocks.map((block) => new X509Certificate(block));
  } catch {
    return cutOff;
  }
}

/** The key, or an error message. */
export function parsePrivateKey(text: string): KeyObject | string {
  if (!text.includes('PRIVATE KEY-----')) {
    return 'this file has no private key in PEM (-----BEGIN PRIVATE KEY-----)';
  }
  if (/-----BEGIN ENCRYPTED PRIVATE KEY-----|^Proc-Type: 4,ENCRYPTED/m.test(text)) {
    return 'this key is encrypted; write it without its passphrase: openssl pkey -in FILE -out NEW';
  }
  try {
    return createPrivateKey(text);
  } catch {
    return 'the private key of this file cannot be read; is it cut off?';
  }
}

/** For a private key that does not belong to its certificate. */
export function foreignKey(certFile: string, keyFile: string): Problem {
  const message =
    'this key does not belong to the (first) certificate of the other file; replace both together';
  return {
    ...wholeFile(keyFile),
    message,
    related: { ...wholeFile(certFile), message: 'the certificate is here' },
  };
}

/** Why OpenSSL rejects the files, for example for a key that is too short. @param what the files in words */
export function refusalOfOpenSsl(options: SecureContextOptions, what: string): string | undefined {
  try {
    createSecureContext(options);
    return undefined;
  } catch (error) {
    const code = error instanceof Error && 'code' in error ? String(error.code) : 'unknown';
    return `OpenSSL does not accept ${what} (${code})`;
  }
}
