import { isIP } from 'node:net';
import { type ConnectionOptions, checkServerIdentity, createSecureContext } from 'node:tls';

/** Node's options for TLS connections to the targets of an upstream, made once per upstream. */
export type TargetTls = Pick<
  ConnectionOptions,
  'secureContext' | 'servername' | 'checkServerIdentity' | 'rejectUnauthorized' | 'ALPNProtocols'
>;

interface TargetTlsOptions {
  /** The name or address that a target's certificate must be issued for. */
  readonly name: string;
  /** The trusted authorities in PEM; undefined for Node's built-in authorities. */
  readonly ca: string | undefined;
  /** The gateway's client certificate with its chain, in PEM. Present only together with `key`. */
  readonly cert?: string;
  readonly key?: string;
}

/**
 * Makes TLS options. With these options, every handshake verifies the chain of the target's certificate, and the name of the upstream. The
 * connection itself goes to an IP address. The options take precedence over `NODE_TLS_REJECT_UNAUTHORIZED`. TLS sessions are not resumed,
 * because Node verifies neither the dates nor the name of the certificate when it resumes a session.
 *
 * @throws when OpenSSL does not accept the certificate or key
 */
export function createTargetTls({ name, ca, cert, key }: TargetTlsOptions): TargetTls {
  // Certificates and SNI do not have the final dot of an absolute name (RFC 6066 §3).
  const bareName = name.replace(/\.$/, '');
  return {
    secureContext: createSecureContext({ ca, cert, key, minVersion: 'TLSv1.2' }),
    // SNI must not contain an IP address (RFC 6066 §3). The empty string also keeps Node's client from sending the name in `Host`.
    servername: isIP(bareName) === 0 ? bareName : '',
    checkServerIdentity: (_connected, certificate) => checkServerIdentity(bareName, certificate),
    rejectUnauthorized: true,
    ALPNProtocols: ['http/1.1'],
  };
}

/** Returns why a connection failed. An OpenSSL error has a short `reason`, while its message is a long trace. */
export function connectionErrorText(error: Error): string {
  if ('code' in error && error.code === 'ECONNREFUSED') {
    return `${error.message}: nothing listens there; start the service, or correct the URL of the upstream`;
  }
  return 'reason' in error && typeof error.reason === 'string' && 'library' in error
    ? error.reason
    : error.message;
}
