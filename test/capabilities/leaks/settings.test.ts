import { generateKeyPairSync } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import { settingsMembers } from '../../../gateway/admin/settings/settings-view.ts';
import { loadSettings } from '../../../gateway/config/load-settings.ts';
import { formatProblems } from '../../../gateway/config/problems/format-problems.ts';
import { configFolder, mainDocument, redisLine } from '../../support/config-folder.ts';
import { makeReporter } from '../../support/leak-report.ts';

const reporter = makeReporter();

function load(settings: string, keysFile = reporter.publicKeys) {
  const main = `${mainDocument}${redisLine}${settings}\n`;
  const folder = configFolder({ 'tollgate.yaml': main, 'github.json': keysFile });
  const loaded = loadSettings({ file: folder.file, env: {} });
  const report = loaded.kind === 'invalid' ? formatProblems(loaded.problems) : '';
  return { loaded, report: report.replaceAll(folder.pathOf(''), '') };
}

function listOf(key: string): string {
  return JSON.stringify({ public_keys: [{ key_identifier: 'a', key, is_current: true }] });
}

describe('the settings of leaked secrets', () => {
  it.each([
    ['', { leaks: { onLeak: 'revoke' } }],
    ['leaks: { onLeak: report }', { leaks: { onLeak: 'report' } }],
    [
      'leaks: { github: { keysUrl: "https://api.github.com/meta/public_keys/secret_scanning" } }',
      {
        leaks: {
          onLeak: 'revoke',
          github: { keysUrl: 'https://api.github.com/meta/public_keys/secret_scanning' },
        },
      },
    ],
    [
      'leaks: { github: { keysUrl: "http://[::1]:80/k" } }',
      { leaks: { onLeak: 'revoke', github: { keysUrl: 'http://[::1]:80/k' } } },
    ],
    [
      'leaks: { github: { keysFile: github.json } }',
      { leaks: { onLeak: 'revoke' }, githubKeys: [{ identifier: reporter.identifier }] },
    ],
  ])('are read: %s', (settings, leaks) => {
    const { loaded, report } = load(settings);
    expect(report).toBe('');
    expect(loaded.kind === 'valid' && loaded.settings).toMatchObject(leaks);
  });

  it('end leaked secrets by default, and only record leaks without Redis', async () => {
    for (const [lines, onLeak] of [
      [redisLine, 'revoke'],
      ['', 'report'],
      ['redis: { url: "" }\n', 'report'],
    ] as const) {
      const { file } = configFolder({ 'tollgate.yaml': mainDocument + lines });
      const loaded = loadSettings({ file, env: {} });
      if (loaded.kind === 'invalid') throw new Error('the configuration is not valid');
      expect(loaded.settings).toMatchObject({ leaks: { onLeak } });
      // `/settings` shows the default, too.
      expect(settingsMembers(loaded.settings)).toMatchObject({ leaks: { onLeak } });
    }
  });

  it.each([
    ['leaks: { github: { keysFile: github.json } }', 1],
    ['leaks: { github: { keysFile: github.json } }\nleaksPath: /leaks', 0],
    ['leaks: { onLeak: report }', 0],
  ])('cause a warning if no path accepts the reports of GitHub: %s', (settings, count) => {
    const { loaded } = load(settings);
    const warnings = loaded.kind === 'valid' ? loaded.warnings : [];
    expect(warnings.filter((warning) => warning.includes('`leaksPath`'))).toHaveLength(count);
  });

  it.each([
    ['leaksPath: /leaks', '`leaksPath` needs `leaks: { github: { keysUrl } }` or `keysFile`'],
    ['leaks: { onLeak: no }', '`leaks.onLeak` must be revoke or report'],
    ['leaks: { github: {} }', '`leaks.github` must be a mapping with either keysFile or keysUrl'],
    [
      'leaks: { github: { keysFile: github.json, keysUrl: "https://a.b/c" } }',
      '`leaks.github` must be a mapping with either keysFile or keysUrl',
    ],
    [
      'leaks: { github: { keysUrl: "http://api.github.com/k" } }',
      '`leaks.github.keysUrl` must be an https URL',
    ],
    [
      'leaks: { github: { keysUrl: "http://127.0.0.1.example.com/k" } }',
      '`leaks.github.keysUrl` must be an https URL',
    ],
    [
      'leaks: { github: { keysUrl: "https://me:secret@api.github.com/k" } }',
      '`leaks.github.keysUrl` must be an https URL',
    ],
    ['leaks: { github: { keysFile: nothing.json } }', 'this file does not exist'],
    [
      'leaksPath: /docs\ndocsPath: /docs\nleaks: { github: { keysFile: github.json } }',
      '`leaksPath` is also a path of `docsPath`; write another path',
    ],
    [
      'leaksPath: /v1/pets\nleaks: { github: { keysFile: github.json } }',
      '`leaksPath` is also a path of the operation `listPets`; write another path',
    ],
  ])('are refused: %s', (settings, message) => {
    expect(load(settings).report).toContain(message);
  });

  const rsa = generateKeyPairSync('rsa', { modulusLength: 2_048 });
  const other = generateKeyPairSync('ec', { namedCurve: 'P-384' });
  const own = generateKeyPairSync('ec', { namedCurve: 'P-256' });
  const pem = { type: 'spki', format: 'pem' } as const;
  it.each([
    ['no JSON', 'no', 'this file has no list of public keys in the form of GitHub'],
    ['another form', '[]', 'this file has no list of public keys in the form of GitHub'],
    ['no key', '{"public_keys":[]}', 'this file has no list of public keys in the form of GitHub'],
    [
      'an RSA key',
      listOf(rsa.publicKey.export(pem).toString()),
      'this file has an entry 1 whose `key` is not a public key on the curve P-256',
    ],
    [
      'a key of another curve',
      listOf(other.publicKey.export(pem).toString()),
      'is not a public key on the curve P-256',
    ],
    [
      'a private key',
      listOf(own.privateKey.export({ type: 'pkcs8', format: 'pem' }).toString()),
      'is not a public key on the curve P-256',
    ],
  ])('are refused if the file of public keys has %s', (_, keysFile, message) => {
    const { report } = load('leaks: { github: { keysFile: github.json } }', keysFile);
    expect(report).toContain(message);
    expect(report).not.toContain('BEGIN');
  });
});
