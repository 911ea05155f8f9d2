import { constants, hkdfSync } from 'node:crypto';
import type { SecureContextOptions } from 'node:tls';
import type { Certificate } from '../model.ts';

/**
 * All that a TLS context of a listener is made of, in one place: the loader of the configuration tries a certificate with
 * exactly the options that the listener uses.
 */
export function secureContextOptions({ cert, key }: Pick<Certificate, 'cert' | 'key'>): SecureContextOptions {
  return {
    cert,
    key,
    minVersion: 'TLSv1.2',
    maxVersion: 'TLSv1.3',
    ciphers: suites.join(':'),
    honorCipherOrder: true,
    // A client could have the server do one handshake after the other on a single connection.
    secureOptions: constants.SSL_OP_NO_RENEGOTIATION,
  };
}

/**
 * The keys of session tickets: the same in all processes with this secret, and others for each certificate, so that a new
 * one ends the resumption of sessions that began with the old one.
 */
export function ticketKeysOf(secret: Uint8Array, { cert }: Pick<Certificate, 'cert'>): Buffer {
  return Buffer.from(hkdfSync('sha256', secret, cert, 'session tickets', ticketKeysBytes));
}

/** As Node wants them: a name, a key for HMAC and one for AES. */
const ticketKeysBytes = 48;

/**
 * Those with forward secrecy and authenticated encryption. Node's own list for TLS 1.2 also has CBC suites and RSA key
 * exchange. AES-128 comes first, since it is the cheapest.
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
