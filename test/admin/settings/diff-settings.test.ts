import { expect, it } from 'vitest';
import { changeText, diffSettings, settingLists } from '../../../gateway/admin/settings/diff-settings.ts';
import { settingsText } from '../../../gateway/admin/settings/settings-view.ts';
import { loadSettings } from '../../../gateway/config/load-settings.ts';
import { configFolder, mainDocument } from '../../support/config-folder.ts';
import { makeCertificate } from '../../support/make-certificate.ts';
import { settingsOf } from '../../support/settings-of.ts';

const [one, other] = [makeCertificate(), makeCertificate()];
const files = {
  'one.pem': one.cert,
  'one.key': one.key,
  'copy.pem': one.cert,
  'copy.key': one.key,
  'other.pem': other.cert,
  'other.key': other.key,
};

const withoutUpstream = mainDocument.replace(/^upstream: .*\n/m, '');

/** The settings of a configuration whose upstream and listener have TLS files, in the form of `/settings`. */
async function shown(name: string, lines: string) {
  const tls = `tls: { cert: ${name}.pem, key: ${name}.key }`;
  const main = `${withoutUpstream}listen: { ${tls} }\n${lines.replace('TLS', tls)}`;
  const { file } = configFolder({ ...files, 'tollgate.yaml': main });
  const loaded = loadSettings({ file, env: {} });
  if (loaded.kind === 'invalid') throw new Error(loaded.problems.map(({ message }) => message).join('\n'));
  return JSON.parse(await settingsText(loaded.settings));
}

const plain = 'bans: { within: 60s }\nupstream: { url: "https://backend:3000", TLS }\n';
const nothing = { added: [], removed: [], changed: [] };
const same = {
  lists: Object.fromEntries(Object.keys(settingLists).map((name) => [name, nothing])),
  settings: [],
};

it('another spelling of a value, and another path of the same file, is no difference', async () => {
  const before = await shown('one', plain);
  const respelt = 'bans: { within: 1m }\nupstreams: { default: { url: "https://BACKEND:3000/", TLS } }\n';
  expect(diffSettings(before, await shown('copy', respelt))).toEqual(same);
});

it('other content of a file is a difference, and so is another duration, in the spelling of the configuration', async () => {
  const before = await shown('one', plain);
  const after = await shown('other', plain.replace('60s', '90s'));
  const { lists, settings } = diffSettings(before, after);
  expect(lists.upstreams.changed).toEqual([
    { id: 'default', changes: [expect.objectContaining({ member: 'tls.certDigestStart' })] },
  ]);
  expect(settings.map(({ member }) => member)).toEqual(
    expect.arrayContaining(['listen.tls.certDigestStart']),
  );
  expect(settings).toContainEqual({ member: 'bans.within', before: '1m', after: '90s' });
});

it('another plan of a key changes the limits that the key gets, and another limit of a plan changes no key', async () => {
  const keyed = async (perMinute: number, members: object) => {
    const plans = { free: { perMinute, perDay: 2_000 }, pro: { perMinute: 600 }, own: 'custom' };
    const keys = [{ id: 'acme', ...members, secrets: [] }];
    return JSON.parse(await settingsText(await settingsOf({ upstream: { url: 'http://b:1' }, plans, keys })));
  };
  const texts = async (perMinute: number, members: object) => {
    const { lists } = diffSettings(await keyed(60, { plan: 'free' }), await keyed(perMinute, members));
    return lists.keys.changed.flatMap(({ changes }) => changes.map(changeText));
  };
  expect(await texts(60, { plan: 'own', limits: { perMinute: 90, perDay: 3_000 } })).toEqual([
    'plan: free → own',
    '60 → 90 a minute',
    '2,000 → 3,000 a day',
  ]);
  expect(await texts(60, { plan: 'pro' })).toEqual([
    'plan: free → pro',
    '60 → 600 a minute',
    '2,000 → no limit a day',
  ]);
  expect(await texts(65, { plan: 'free' })).toEqual([]);
});
