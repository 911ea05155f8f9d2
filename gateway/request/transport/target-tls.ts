import { isIP } from 'node:net';
import { type ConnectionOptions, checkServerIdentity, createSecureContext } from 'node:tls';

/** Node's options for TLS connections to the targets of an upstream. Made once. */
export type TargetTls = Pick<
  ConnectionOptions,
  'secureContext' | 'servername' | 'checkServerIdentity' | 'rejectUnauthorized' | 'ALPNProtocols'
>;

interface TargetTlsOptions {
  /** The name or address that a target's certificate must be issued for. */
  readonly name: string;
  /** PEM of the trusted authorities; undefined for Node's own. */
  readonly ca: string | undefined;
  /** PEM of the gateway's certificate with its chain, and of its private key: both or neither. */
  readonly cert?: string;
  readonly key?: string;
}

/**
 * Every handshake verifies the target by chain and name. The name is that of the upstream, though the connection goes to an address.
 * These options take precedence over `NODE_TLS_REJECT_UNAUTHORIZED`. No session is resumed, because Node would then verify neither
 * the dates nor the name of the certificate.
 *
 * @throws when OpenSSL does not accept the certificate or key
 */
export function createTargetTls({ name, ca, cert, key }: TargetTlsOptions): TargetTls {
  // Certificates and SNI do not have the final dot of an absolute name (RFC 6066 §3).
  const bareName = name.replace(/\.$/, '');
  return {
    secureContext: createSecureContext({ ca, cert, key, minVersion: 'TLSv1.2' }),
    // SNI is not for addresses (RFC 6066 §3). The empty string also keeps Node's client from sending the name in `Host`.
    servername: isIP(bareName) === 0 ? bareName : '',
    checkServerIdentity: (_connected, certificate) => checkServerIdentity(bareName, certificate),
    rejectUnauthorized: true,
    ALPNProtocols: ['http/1.1'],
  };
}

/** Why a connection failed. The message of an OpenSSL error is a whole trace, but the error also has a short reason. */
export function connectionErrorText(error: Error): string {
  return 'reason' in error && typeof error.reason === 'string' && 'library' in error
    ? error.reason
    : error.message;
}
