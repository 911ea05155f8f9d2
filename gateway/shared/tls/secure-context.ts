import { constants, hkdfSync } from 'node:crypto';
import type { SecureContextOptions } from 'node:tls';
import type { Certificate } from '../model.ts';

/** The configuration loader validates certificates with the same options. */
export function secureContextOptions({ cert, key }: Pick<Certificate, 'cert' | 'key'>): SecureContextOptions {
  return {
    cert,
    key,
    minVersion: 'TLSv1.2',
    maxVersion: 'TLSv1.3',
    ciphers: suites.join(':'),
    honorCipherOrder: true,
    // Renegotiation would let a client cause any number of handshakes on a single connection.
    secureOptions: constants.SSL_OP_NO_RENEGOTIATION,
  };
}

/** From a secret that several processes share, and the certificate, so that clients cannot resume old sessions after it was replaced. */
export function ticketKeysOf(secret: Uint8Array, { cert }: Pick<Certificate, 'cert'>): Buffer {
  return Buffer.from(hkdfSync('sha256', secret, cert, 'session tickets', ticketKeysBytes));
}

/** A name, an HMAC key and an AES key. */
const ticketKeysBytes = 48;

/**
 * With forward secrecy and authenticated encryption. Node's list for TLS 1.2 also has CBC suites and RSA key exchange. AES-128 comes first
 * because it is the cheapest.
 */
const suites = [
  'TLS_AES_128_GCM_SHA256',
  'TLS_AES_256_GCM_SHA384',
  'TLS_CHACHA20_POLY1305_SHA256',
  'ECDHE-ECDSA-AES128-GCM-SHA256',
  'ECDHE-RSA-AES128-GCM-SHA256',
  'ECDHE-ECDSA-AES256-GCM-SHA384',
  'ECDHE-RSA-AES256-GCM-SHA384',
  'ECDHE-ECDSA-CHACHA20-POLY1305',
  'ECDHE-RSA-CHACHA20-POLY1305',
];
