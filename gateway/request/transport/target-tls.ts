import { isIP } from 'node:net';
import { type ConnectionOptions, checkServerIdentity, createSecureContext } from 'node:tls';

/** What TLS connections to the targets of an upstream have in common; Node's options, made once. */
export type TargetTls = Pick<
  ConnectionOptions,
  'secureContext' | 'servername' | 'checkServerIdentity' | 'rejectUnauthorized' | 'ALPNProtocols'
>;

interface TargetTlsOptions {
  /** The name or address that a target's certificate must be issued for. */
  readonly name: string;
  /** PEM: the authorities that are trusted; absent: those of Node. */
  readonly ca: string | undefined;
  /** PEM: the certificate with its chain and the key that this side authenticates itself with; both or neither. */
  readonly cert?: string;
  readonly key?: string;
}

/**
 * A target is verified by chain and name in every handshake. The name is the upstream's, though the connection goes to
 * an address. Nothing switches that off: what is given here has precedence over `NODE_TLS_REJECT_UNAUTHORIZED`. No
 * session is resumed, since Node verifies neither the dates nor the name of a certificate then.
 *
 * @throws when OpenSSL takes no such certificate or key
 */
export function createTargetTls({ name, ca, cert, key }: TargetTlsOptions): TargetTls {
  // The dot at the end of a name that is complete is part of neither certificates nor SNI (RFC 6066 §3).
  const bareName = name.replace(/\.$/, '');
  return {
    secureContext: createSecureContext({ ca, cert, key, minVersion: 'TLSv1.2' }),
    // SNI takes no address (RFC 6066 §3). The empty string also keeps Node's client from sending the name in `Host`.
    servername: isIP(bareName) === 0 ? bareName : '',
    checkServerIdentity: (_connected, certificate) => checkServerIdentity(bareName, certificate),
    rejectUnauthorized: true,
    ALPNProtocols: ['http/1.1'],
  };
}

/** Why a connection failed. An error of OpenSSL has a whole trace as its message, and a short reason beside it. */
export function connectionErrorText(error: Error): string {
  return 'reason' in error && typeof error.reason === 'string' && 'library' in error
    ? error.reason
    : error.message;
}
