import { expect, it } from 'vitest';
import { apiDocument } from '../../../gateway/admin/api/api-document.ts';
import { settingsMembers } from '../../../gateway/admin/settings/settings-view.ts';
import { settingRows } from '../../../gateway/admin/words/settings.js';
import { makeToken } from '../../support/admin-client.ts';
import { settingsOf } from '../../support/settings-of.ts';
import { tunedBounds } from '../../support/tuned-bounds.ts';

async function rowsOf(members: Record<string, unknown>) {
  const settings = JSON.parse(JSON.stringify({ ...settingsMembers(await settingsOf(members)), keys: [] }));
  return new Map(settingRows(settings).map(({ name, value }) => [name, value]));
}

it('the names are those of the configuration, for one and for several upstreams', async () => {
  const one = await rowsOf({ upstream: { url: 'http://127.0.0.1:1' }, bans: { for: '120s' } });
  expect([one.get('upstream.url'), one.get('bans.for'), one.get('trustedProxies')]).toEqual([
    'http://127.0.0.1:1',
    '2m',
    'none',
  ]);
  const two = await rowsOf({
    upstream: undefined,
    upstreams: { pets: { url: 'http://127.0.0.1:1' }, shop: { url: 'http://127.0.0.1:2' } },
  });
  expect(two.get('upstreams.shop.url')).toBe('http://127.0.0.1:2');
});

it('a digest is cut, and keys, plans and operations are left out', async () => {
  const { entry } = makeToken('read', 'al');
  const rows = await rowsOf({
    upstream: { url: 'http://127.0.0.1:1' },
    admin: { host: '127.0.0.1', port: 0, tokens: [entry] },
  });
  expect(rows.get('admin.tokens[0].sha256')).toBe(`${entry.sha256.slice(0, 8)}…`);
  expect([...rows.keys()].filter((name) => /^(keys\[|plans|operations|version)/.test(name))).toEqual([]);
});

it('the value of a setting is marked if it is the default', async () => {
  const settings = JSON.parse(
    JSON.stringify({
      ...settingsMembers(await settingsOf({ upstream: { url: 'http://127.0.0.1:1' }, bans: { for: '2m' } })),
      ...{ keys: [], keyCount: 0 },
    }),
  );
  const document = JSON.parse(JSON.stringify(apiDocument(tunedBounds({}))));
  const rows = settingRows(settings, document);
  const isDefault = (wanted: string) => rows.find(({ name }) => name === wanted)?.isDefault;
  const names = ['bans.for', 'bans.within', 'bodyBytesMax', 'trustedProxies', 'environment', 'hsts'];
  expect(names.map(isDefault)).toEqual([false, true, true, true, false, false]);
});
