import { expect, it } from 'vitest';
import type { ValidSettings } from '../../gateway/config/load-settings.ts';
import { loadSettings } from '../../gateway/config/load-settings.ts';
import { assembleLoaded, type LoadedPart, partsOf } from '../../gateway/config/loaded-messages.ts';
import type { Key, Secret, Settings } from '../../gateway/model.ts';
import { configFolder } from '../support/config-folder.ts';
import { limitsOf } from '../support/limits-of.ts';

type Tables = Pick<Settings, 'keys' | 'secrets'>;

/** A valid configuration with these keys. */
function loadedWith(tables: Tables): ValidSettings {
  const loaded = loadSettings({ file: configFolder().file, env: {} });
  if (loaded.kind === 'invalid') throw new Error('the configuration of this test is not valid');
  return { ...loaded, settings: { ...loaded.settings, ...tables } };
}

function tablesOf(count: number) {
  const keys = new Map<string, Key>();
  const secrets = new Map<string, Secret>();
  for (let i = 0; i < count; i++) {
    const limits = limitsOf({ perMinute: 60, perDay: 1000 });
    keys.set(`key-${i}`, { id: `key-${i}`, plan: 'free', limits, disabled: false });
    secrets.set(`digest-${i}`, { keyId: `key-${i}`, expiresMs: Number.POSITIVE_INFINITY });
  }
  return { keys, secrets };
}

/** Sends it in parts, each copied as between threads. */
async function carry(loaded: ValidSettings, base?: Tables) {
  const parts = partsOf(loaded, base);
  const seen: LoadedPart[] = [];
  const assembled = await assembleLoaded(async () => {
    const part = structuredClone(parts.next().value) ?? undefined;
    if (part !== undefined) seen.push(part);
    return part;
  }, base);
  return { assembled, seen };
}

it('a configuration arrives unchanged, however many keys it has', async () => {
  for (const count of [0, 1, 250, 251, 1_000]) {
    const loaded = loadedWith(tablesOf(count));
    const { assembled, seen } = await carry(loaded);
    expect(assembled).toEqual(loaded);
    for (const part of seen) {
      if (part.kind === 'keys') expect(part.keys.length + part.secrets.length).toBeLessThanOrEqual(500);
    }
  }
});

it('a receiver that already has keys is only sent those that are new, changed or removed', async () => {
  const base = tablesOf(1_000);
  const { keys, secrets } = tablesOf(1_000);
  const raised: Key = {
    id: 'key-3',
    plan: 'pro',
    limits: limitsOf({ perMinute: 300, perDay: 10_000 }),
    disabled: false,
  };
  keys.set('key-3', raised).delete('key-4');
  secrets.set('new', { keyId: 'key-3', expiresMs: 1 }).delete('digest-4');
  const loaded = loadedWith({ keys, secrets });
  const { assembled, seen } = await carry(loaded, base);
  expect(assembled).toEqual(loaded);
  expect(seen.slice(1)).toEqual([
    {
      kind: 'keys',
      keys: [
        ['key-3', raised],
        ['key-4', undefined],
      ],
      secrets: [
        ['new', { keyId: 'key-3', expiresMs: 1 }],
        ['digest-4', undefined],
      ],
    },
  ]);
});

it('parts that were made without a base use none of the keys that the receiver has', async () => {
  const loaded = loadedWith(tablesOf(3));
  const parts = partsOf(loaded, undefined);
  const assembled = await assembleLoaded(async () => parts.next().value ?? undefined, tablesOf(10));
  expect(assembled).toEqual(loaded);
});
