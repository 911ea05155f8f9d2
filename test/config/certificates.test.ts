import { describe, expect, it } from 'vitest';
import { loadSettings } from '../../gateway/config/load-settings.ts';
import { formatProblems } from '../../gateway/config/problems/format-problems.ts';
import { restartNeeded } from '../../gateway/config/watch-settings.ts';
import { configFolder, mainDocument } from '../support/config-folder.ts';
import { makeCertificate } from '../support/make-certificate.ts';

const dayMs = 86_400_000;
const good = makeCertificate();
const other = makeCertificate();
const withTls = `${mainDocument}listen: { port: 8443, tls: { cert: cert.pem, key: key.pem } }\n`;

interface Files {
  readonly main?: string;
  readonly cert?: string;
  readonly key?: string;
}

function load({ main = withTls, cert = good.cert, key = good.key }: Files = {}) {
  const folder = configFolder({ 'tollgate.yaml': main, 'cert.pem': cert, 'key.pem': key });
  return { folder, loaded: loadSettings({ file: folder.file, env: {} }) };
}

/** The report on a configuration, without the path of its folder; empty when the configuration is valid. */
function reportOn(files: Files): string {
  const { folder, loaded } = load(files);
  if (loaded.kind === 'valid') return '';
  return formatProblems(loaded.problems).replaceAll(folder.pathOf(''), '');
}

function expiringIn(ms: number) {
  const certificate = makeCertificate({ notBeforeMs: Date.now() - 30 * dayMs, notAfterMs: Date.now() + ms });
  return {
    cert: certificate.cert,
    key: certificate.key,
    end: new Date(certificate.notAfterMs).toISOString(),
  };
}

describe('a certificate with its key', () => {
  it('is read with the configuration, for either listener', () => {
    const main = `${withTls}admin: { tls: { cert: cert.pem, key: key.pem } }\n`;
    const { folder, loaded } = load({ main });
    expect(loaded).toMatchObject({
      kind: 'valid',
      settings: {
        listen: { port: 8443, tls: { cert: good.cert, key: good.key, notAfterMs: good.notAfterMs } },
        admin: { tls: { file: folder.pathOf('cert.pem') } },
      },
    });
  });

  it('that is broken and used by both listeners is reported once', () => {
    const main = `${withTls}admin: { tls: { cert: cert.pem, key: key.pem } }\n`;
    expect(reportOn({ main, key: other.key }).match(/does not belong/g)).toHaveLength(1);
  });

  it('is watched, and is part of the version', () => {
    const { folder, loaded } = load();
    expect([...loaded.digests.keys()]).toContain(folder.pathOf('key.pem'));
    folder.write('cert.pem', other.cert);
    folder.write('key.pem', other.key);
    expect(loadSettings({ file: folder.file, env: {} }).version).not.toBe(loaded.version);
  });

  it.each<[string, Files, string]>([
    [
      'that is not PEM',
      { cert: 'hello' },
      'cert.pem:1:1: this file has no certificate in PEM (-----BEGIN CERTIFICATE-----)',
    ],
    [
      'whose two files are exchanged',
      { cert: good.key, key: good.cert },
      'cert.pem:1:1: this file has no certificate in PEM (-----BEGIN CERTIFICATE-----); it has a private key: are `cert` and `key` exchanged?\n\n' +
        'key.pem:1:1: this file has no private key in PEM (-----BEGIN PRIVATE KEY-----)',
    ],
    [
      'that is cut off',
      { cert: good.cert.slice(0, 200) },
      'cert.pem:1:1: a certificate of this file cannot be read; is it cut off?',
    ],
    [
      'whose key is cut off',
      { key: good.key.slice(0, 80) },
      'key.pem:1:1: the private key of this file cannot be read; is it cut off?',
    ],
    [
      'whose key belongs to another',
      { key: other.key },
      'key.pem:1:1: this key does not belong to the (first) certificate of the other file; replace both together\n' +
        'cert.pem:1:1: the certificate is here',
    ],
    [
      'whose key is encrypted',
      {
        key: good.privateKey
          .export({ type: 'pkcs8', format: 'pem', cipher: 'aes-256-cbc', passphrase: 'x' })
          .toString(),
      },
      'key.pem:1:1: this key is encrypted; write it without its passphrase: openssl pkey -in FILE -out NEW',
    ],
    [
      'whose chain is broken',
      { cert: good.cert + other.cert.slice(0, 200) },
      'cert.pem:1:1: a certificate of this file cannot be read; is it cut off?',
    ],
    [
      'that is named only half',
      { main: `${mainDocument}listen: { tls: { cert: cert.pem } }\n` },
      'tollgate.yaml:9:11: `listen.tls.key` is missing; write the path of a PEM file\n' +
        '  9 | listen: { tls: { cert: cert.pem } }\n' +
        '    |           ^',
    ],
    [
      'that is not there',
      { main: withTls.replace('cert.pem', 'nowhere.pem') },
      'tollgate.yaml:9:36: `listen.tls.cert`: this file does not exist\n' +
        '  9 | listen: { port: 8443, tls: { cert: nowhere.pem, key: key.pem } }\n' +
        '    |                                    ^',
    ],
  ])('%s is reported with its file and what to do', (_what, files, report) => {
    expect(reportOn(files)).toBe(report);
  });

  it('that is too weak for OpenSSL is reported', () => {
    const weak = makeCertificate({ algorithm: 'rsa', modulusLength: 512 });
    expect(reportOn({ cert: weak.cert, key: weak.key })).toMatch(
      /^cert\.pem:1:1: OpenSSL does not accept .* \(ERR_SSL_EE_KEY_TOO_SMALL\)$/,
    );
  });

  it('is never reported with a part of the private key', () => {
    const bodyOf = (pem: string) => pem.split('\n').slice(1, -2);
    const texts = [
      { cert: good.key },
      { key: other.key },
      { key: good.key.slice(0, 150) },
      { key: `x${good.key}` },
      { cert: good.key, key: good.cert },
    ].map(reportOn);
    for (const line of [...bodyOf(good.key), ...bodyOf(other.key)]) {
      expect(texts.join('\n')).not.toContain(line.slice(0, 12));
    }
  });
});

describe('the expiry of a certificate', () => {
  it('gives a warning from 14 days before, and not earlier', () => {
    const warningsOf = (ms: number) => {
      const { cert, key, end } = expiringIn(ms);
      const { loaded } = load({ cert, key });
      return { end, warnings: loaded.kind === 'valid' ? loaded.warnings : ['invalid'] };
    };
    const soon = warningsOf(14 * dayMs - 60_000);
    expect(soon.warnings).toEqual([
      expect.stringContaining(`\`listen.tls\` expires on ${soon.end}, in 13 days`),
    ]);
    expect(warningsOf(14 * dayMs + 60_000).warnings).toEqual([]);
  });

  it('is an error when a new certificate has expired', () => {
    const { end, ...files } = expiringIn(-60_000);
    expect(reportOn(files)).toBe(
      `cert.pem:1:1: this certificate expired on ${end}; replace it and its private key`,
    );
  });

  it('is a warning when the present certificate expires, and other edits still take effect', () => {
    const { cert, key } = expiringIn(-60_000);
    const { folder, loaded } = load({ cert, key });
    folder.write('keys.yaml', '[]');
    const edited = loadSettings({ file: folder.file, env: {}, inForce: loaded.digests });
    expect(edited.kind === 'valid' && edited.warnings).toContainEqual(expect.stringContaining('expired on'));
    folder.write('cert.pem', `${cert}\n`);
    expect(loadSettings({ file: folder.file, env: {}, inForce: loaded.digests }).kind).toBe('invalid');
  });
});

describe('a restart', () => {
  const settingsOf = (files: Files) => {
    const { loaded } = load(files);
    if (loaded.kind === 'invalid') throw new Error(formatProblems(loaded.problems));
    return loaded.settings;
  };

  it('is necessary to switch TLS on or off, but not for another certificate', () => {
    const plain = settingsOf({ main: mainDocument });
    const tls = settingsOf({ main: withTls.replace('port: 8443, ', '') });
    const renewed = settingsOf({
      main: withTls.replace('port: 8443, ', ''),
      cert: other.cert,
      key: other.key,
    });
    expect([restartNeeded(plain, tls), restartNeeded(tls, plain), restartNeeded(tls, renewed)]).toEqual([
      ['listen'],
      ['listen'],
      [],
    ]);
  });
});
