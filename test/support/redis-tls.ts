import { mkdtempSync, writeFileSync } from 'node:fs';
import { rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createAuthority } from './certificates.ts';

/** TLS settings of Redis servers. The servers accept only TLS connections with a client certificate, also from each other. */
export interface RedisTls {
  /** Options of `redis-server`, without its port. */
  readonly options: readonly string[];
  /** Options of a test's own connection, which accepts any name in the server's certificate. */
  readonly client: {
    readonly ca: string;
    readonly cert: string;
    readonly key: string;
    readonly checkServerIdentity: () => undefined;
  };
  /** The certificate files of a gateway, in the form of the configuration. */
  readonly files: { readonly ca: string; readonly cert: string; readonly key: string };
  remove(): Promise<void>;
}

/** @param names the host names and addresses in the certificate of the servers */
export function makeRedisTls(names: readonly string[] = ['127.0.0.1']): RedisTls {
  const folder = mkdtempSync(join(tmpdir(), 'tollgate-redis-tls-'));
  const write = (name: string, text: string) => {
    writeFileSync(join(folder, name), text);
    return join(folder, name);
  };
  const authority = createAuthority();
  const [ofServer, ofClient] = [authority.issue({ names }), authority.issue({ names: ['client.test'] })];
  const files = {
    ca: write('ca.pem', authority.cert),
    cert: write('cert.pem', ofClient.cert),
    key: write('key.pem', ofClient.key),
  };
  return {
    options: [
      ...['--tls-ca-cert-file', files.ca, '--tls-auth-clients', 'yes', '--tls-replication', 'yes'],
      ...['--tls-cert-file', write('server.pem', ofServer.cert)],
      ...['--tls-key-file', write('server-key.pem', ofServer.key)],
    ],
    client: { ca: authority.cert, ...ofClient, checkServerIdentity: () => undefined },
    files,
    remove: () => rm(folder, { recursive: true, force: true }),
  };
}
