import { afterAll, beforeAll } from 'vitest';
import { createAuthority, type KeyPair } from './certificates.ts';

interface BackendTls {
  readonly certificate: KeyPair;
  /** The certificate authority that a client needs to verify the certificate. */
  readonly client: { readonly ca: string; readonly serverName: string };
}

let inUse: BackendTls | undefined;

/**
 * During the tests of this file, its recording backends, and the connection pools and gateways that connect to them, use TLS. Call this at
 * the top level of a test file. The next file of the same worker uses cleartext again. If no test of this file runs, the file changes
 * nothing.
 */
export function useTls(): void {
  beforeAll(() => {
    const authority = createAuthority();
    const serverName = 'store.test';
    inUse = {
      certificate: authority.issue({ names: [serverName] }),
      client: { ca: authority.cert, serverName },
    };
  });
  afterAll(() => {
    inUse = undefined;
  });
}

/** Undefined for cleartext, which most test files use. */
export function backendTls(): BackendTls | undefined {
  return inUse;
}
