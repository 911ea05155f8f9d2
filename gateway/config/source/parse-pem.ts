import { createPrivateKey, type KeyObject, X509Certificate } from 'node:crypto';

const certificateBegin = '-----BEGIN CERTIFICATE-----';
const certificateBlock = /-----BEGIN CERTIFICATE-----[^-]+-----END CERTIFICATE-----/g;

/**
 * The certificates of a text, at least one, or what is wrong with it. That repeats nothing of the text, which may be a
 * private key that was put in the wrong place.
 */
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

/** The private key of a text, or what is wrong with it. */
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
