import { createAuthority, type KeyPair } from './certificates.ts';

interface BackendTls {
  readonly certificate: KeyPair;
  /** What a client verifies it with. */
  readonly client: { readonly ca: string; readonly serverName: string };
}

let inUse: BackendTls | undefined;

/** From now on the recording backends of this test file speak TLS, and what is started before them does so too. */
export function useTls(): void {
  const authority = createAuthority();
  const serverName = 'store.test';
  inUse = {
    certificate: authority.issue({ names: [serverName] }),
    client: { ca: authority.cert, serverName },
  };
}

/** Undefined: they speak cleartext, as they do in most test files. */
export function backendTls(): BackendTls | undefined {
  return inUse;
}
