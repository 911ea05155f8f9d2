import { createHash, generateKeyPairSync, type KeyObject, sign } from 'node:crypto';
import type { Certificate } from '../../gateway/shared/model.ts';

export interface CertificateOptions {
  readonly host?: string;
  /** Epoch ms; the certificate stores whole seconds. */
  readonly notBeforeMs?: number;
  readonly notAfterMs?: number;
  readonly algorithm?: 'ecdsa' | 'rsa';
  /** The length of an RSA key in bits. */
  readonly modulusLength?: number;
}

export interface TestCertificate extends Certificate {
  readonly privateKey: KeyObject;
}

/**
 * Creates a self-signed certificate for 127.0.0.1 and a host name, which a client accepts if it has the certificate as `ca`. This module
 * writes the DER encoding itself, because Node cannot create certificates and old versions of openssl cannot create expired certificates.
 */
export function makeCertificate(options: CertificateOptions = {}): TestCertificate {
  const { host = 'localhost', algorithm = 'ecdsa', modulusLength = 2_048 } = options;
  const dayMs = 86_400_000;
  const { notBeforeMs = Date.now() - dayMs, notAfterMs = Date.now() + 90 * dayMs } = options;
  const { privateKey, publicKey } =
    algorithm === 'ecdsa'
      ? generateKeyPairSync('ec', { namedCurve: 'P-256' })
      : generateKeyPairSync('rsa', { modulusLength });
  const spki = publicKey.export({ type: 'spki', format: 'der' });
  const signatureAlgorithm =
    algorithm === 'ecdsa'
      ? sequence(oid('2a8648ce3d040302')) // ecdsa-with-SHA256
      : sequence(oid('2a864886f70d01010b'), der(0x05)); // sha256WithRSAEncryption
  const name = sequence(der(0x31, sequence(oid('550403'), der(0x0c, Buffer.from(host)))));
  const serial = createHash('sha256').update(spki).digest().subarray(0, 8);
  serial[0] = 0x40;
  const names = sequence(der(0x82, Buffer.from(host)), der(0x87, Buffer.from([127, 0, 0, 1])));
  const toSign = sequence(
    der(0xa0, der(0x02, Buffer.from([2]))), // version 3
    der(0x02, serial),
    signatureAlgorithm,
    name,
    sequence(time(notBeforeMs), time(notAfterMs)),
    name,
    spki,
    der(0xa3, sequence(sequence(oid('551d11'), der(0x04, names)))), // subjectAltName
  );
  const signature = sign('sha256', toSign, privateKey);
  const whole = sequence(toSign, signatureAlgorithm, der(0x03, Buffer.from([0]), signature));
  const lines = whole.toString('base64').replace(/.{1,64}/g, '$&\n');
  return {
    file: 'cert.pem',
    cert: `-----BEGIN CERTIFICATE-----\n${lines}-----END CERTIFICATE-----\n`,
    key: privateKey.export({ type: 'pkcs8', format: 'pem' }).toString(),
    notAfterMs: Math.floor(notAfterMs / 1_000) * 1_000,
    privateKey,
  };
}

function der(tag: number, ...parts: readonly Buffer[]): Buffer {
  const content = Buffer.concat(parts);
  const { length } = content;
  const octets =
    length < 0x80 ? [length] : length < 0x100 ? [0x81, length] : [0x82, length >> 8, length & 0xff];
  return Buffer.concat([Buffer.from([tag, ...octets]), content]);
}

function sequence(...parts: readonly Buffer[]): Buffer {
  return der(0x30, ...parts);
}

function oid(hex: string): Buffer {
  return der(0x06, Buffer.from(hex, 'hex'));
}

/** GeneralizedTime, because it supports years after 2049. */
function time(ms: number): Buffer {
  const digits = new Date(ms).toISOString().replace(/\.\d+/, '').replace(/[-:T]/g, '');
  return der(0x18, Buffer.from(digits));
}
