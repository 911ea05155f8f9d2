import { createAuthority, type KeyPair } from './certificates.ts';

interface BackendTls {
  readonly certificate: KeyPair;
  /** The authority that a client needs to verify the certificate. */
  readonly client: { readonly ca: string; readonly serverName: string };
}

let inUse: BackendTls | undefined;

/**
 * Makes the recording backends of this test file, and the pools and fronts that connect to them, use TLS from now on.
 */
export function useTls(): void {
  const authority = createAuthority();
  const serverName = 'store.test';
  inUse = {
    certificate: authority.issue({ names: [serverName] }),
    client: { ca: authority.cert, serverName },
  };
}

/** Undefined for cleartext, as in most test files. */
export function backendTls(): BackendTls | undefined {
  return inUse;
}
