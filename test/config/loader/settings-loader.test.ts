import { readdirSync, readFileSync } from 'node:fs';
import { afterAll, expect, onTestFinished, test } from 'vitest';
import { loadSettings } from '../../../gateway/config/load-settings.ts';
import { createSettingsLoader } from '../../../gateway/config/loader/settings-loader.ts';
import { digestOfContent, UnsettledContent } from '../../../gateway/config/source/read-config-file.ts';
import { defaultBounds } from '../../../gateway/shared/timeouts-and-sizes.ts';
import { configFolder, digestOf, mainDocument } from '../../support/config-folder.ts';
import { loadedView } from '../../support/loaded-view.ts';
import { until } from '../../support/until.ts';

/** A new thread takes 0.35 s of CPU time, so most tests share one thread. */
const loader = createSettingsLoader(defaultBounds);
afterAll(() => loader.close());

test('the thread returns the same as loadSettings, load after load', async () => {
  const folder = configFolder({ 'tollgate.yaml': mainDocument.replace('test', '$' + '{NAME}') });
  for (const env of [{ NAME: 'a' }, { NAME: 'b' }, {}]) {
    const options = { file: folder.file, env };
    expect(loadedView(await loader.load(options))).toEqual(loadedView(loadSettings(options)));
  }
});

test('each file is reported after it was read, with the digest of the content behind the result', async () => {
  const folder = configFolder();
  for (let i = 0; i < 2; i++) {
    const read: [string, string][] = [];
    const onRead = (file: string, digest: string) => read.push([file, digest]);
    const { digests } = await loader.load({ file: folder.file, env: {}, onRead });
    expect(read).toEqual([...digests]);
  }
});

test('every edit is read completely, also by a new thread', async () => {
  const folder = configFolder();
  const options = { file: folder.file, env: {} };
  for (const [ids, isRestarted] of [
    ['abc', false],
    ['ad', false],
    ['abd', true],
    ['d', false],
  ] as const) {
    if (isRestarted) loader.close();
    const keys = [...ids].map((id) => `- { id: ${id}, plan: free, secrets: [{ sha256: ${digestOf(id)} }] }`);
    folder.write('keys.yaml', keys.join('\n'));
    const loaded = await loader.load(options);
    expect(loadedView(loaded)).toEqual(loadedView(loadSettings(options)));
    expect(loaded.kind === 'valid' && [...loaded.settings.keys.ids()].join('')).toBe(ids);
  }
});

test('a half-written keys file is left unread until it is known to be complete, and the next edit is still read as a difference', async () => {
  const entry = (id: number, more = '') =>
    `- id: key-${id}\n  plan: free\n  secrets:\n    - sha256: "${String(id).padStart(64, '0')}"\n${more}`;
  const keysText = (revoked?: number) =>
    Array.from({ length: 4_000 }, (_, id) => entry(id, id === revoked ? '  disabled: true\n' : '')).join('');
  const folder = configFolder({ 'keys.yaml': keysText() });
  const { file } = folder;
  const first = await loader.load({ file, env: {} });
  if (first.kind !== 'valid') throw new Error('the first configuration is not valid');
  const options = { file, env: {}, settled: new Set(first.digests.values()) };

  const half = keysText().slice(0, keysText().indexOf(entry(3_000)));
  for (const written of [half, `${half}- id: key-2`]) {
    folder.write('keys.yaml', written);
    await expect(loader.load(options, first.settings)).rejects.toThrow(UnsettledContent);
  }
  folder.write('keys.yaml', keysText(7));
  const edited = await loader.load(options, first.settings);
  expect(edited).toMatchObject({ kind: 'valid', message: { kind: 'difference' } });

  folder.write('keys.yaml', half);
  const settled = new Set([...options.settled, digestOfContent(half)]);
  const complete = await loader.load({ ...options, settled }, first.settings);
  expect(complete.kind === 'valid' && complete.settings.keys.size).toBe(3_000);
});

test('a load whose arguments cannot be sent to the thread throws, and the next one works', async () => {
  const { file } = configFolder();
  // A file name that is not a string is a bug in the caller. The error must reach the caller instead of ending the
  // process.
  await expect(loader.load({ file: Symbol('none') as unknown as string, env: {} })).rejects.toThrow();
  await expect(loader.load({ file: 7 as unknown as string, env: {} })).rejects.toThrow();
  expect(await loader.load({ file, env: {} })).toMatchObject({ kind: 'valid' });
});

test('a large broken keys file keeps its last valid content, even after an idle thread has ended', {
  tags: 'full',
}, async () => {
  const key = (i: number) => `- { id: key${i}, plan: free, name: ${'x'.repeat(150)}, secrets: [] }\n`;
  const keys = Array.from({ length: 6_000 }, (_, i) => key(i)).join('');
  const folder = configFolder({ 'keys.yaml': keys });
  const loader = createSettingsLoader({ ...defaultBounds, configThreadIdleMs: 1 });
  onTestFinished(() => loader.close());
  let inForce: Awaited<ReturnType<typeof loader.load>> | undefined;
  for (const [environment, isBroken] of [
    ['a', false],
    ['b', true],
    ['c', true],
  ] as const) {
    folder.write('tollgate.yaml', mainDocument.replace('test', environment));
    folder.write('keys.yaml', isBroken ? `${keys}- {` : keys);
    const lastValid = inForce?.kind === 'valid' ? inForce : undefined;
    inForce = await loader.load({ file: folder.file, env: {}, lastValid }, lastValid?.settings);
    expect(inForce).toMatchObject({ kind: 'valid', settings: { environment, keys: { size: 6_000 } } });
    expect(inForce.kind === 'valid' && inForce.kept.length).toBe(isBroken ? 1 : 0);
    await until('the thread has ended', () => configThreads() === 0);
  }
});

/** The number of loader threads of this process. */
function configThreads(): number {
  const names = readdirSync('/proc/self/task').map((id) =>
    readFileSync(`/proc/self/task/${id}/comm`, 'utf8'),
  );
  return names.filter((name) => name.trim() === 'config').length;
}
