import { execFileSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

/** PEM texts. */
export interface KeyPair {
  readonly cert: string;
  readonly key: string;
}

export interface Authority extends KeyPair {
  /** Issues a certificate with a new key, for servers and clients. */
  issue(options?: IssueOptions): KeyPair;
}

interface IssueOptions {
  /** The host names and addresses of the certificate. */
  readonly names?: readonly string[];
  /** The days until the certificate expires; negative for an expired certificate. */
  readonly days?: number;
}

const newKey = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes'];

/** Creates a new certificate authority with openssl. */
export function createAuthority(name = 'Test authority'): Authority {
  const { cert, key } = inFolder((openssl, read) => {
    openssl(
      'req',
      '-x509',
      ...newKey,
      '-keyout',
      'key',
      '-out',
      'cert',
      '-days',
      '30',
      '-subj',
      `/CN=${name}`,
    );
    return { cert: read('cert'), key: read('key') };
  });
  return {
    cert,
    key,
    issue: ({ names = ['127.0.0.1'], days = 30 } = {}) =>
      inFolder((openssl, read, write) => {
        write('ca-cert', cert);
        write('ca-key', key);
        const altNames = names.map((each) => `${/^[\d.]+$|:/.test(each) ? 'IP' : 'DNS'}:${each}`);
        write('extensions', `subjectAltName=${altNames.join(',')}\n`);
        openssl('req', ...newKey, '-keyout', 'key', '-out', 'request', '-subj', '/CN=Test');
        const signer = ['-CA', 'ca-cert', '-CAkey', 'ca-key', '-extfile', 'extensions'];
        openssl('x509', '-req', '-in', 'request', '-out', 'cert', '-days', String(days), ...signer);
        return { cert: read('cert'), key: read('key') };
      }),
  };
}

/** Runs openssl in a temporary folder. */
function inFolder<T>(
  run: (
    openssl: (...args: string[]) => void,
    read: (file: string) => string,
    write: (file: string, text: string) => void,
  ) => T,
): T {
  const folder = mkdtempSync(join(tmpdir(), 'tollgate-certificates-'));
  try {
    return run(
      (...args) => void execFileSync('openssl', args, { cwd: folder, stdio: 'pipe' }),
      (file) => readFileSync(join(folder, file), 'utf8'),
      (file, text) => writeFileSync(join(folder, file), text),
    );
  } finally {
    rmSync(folder, { recursive: true });
  }
}
