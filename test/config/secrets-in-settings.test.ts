import fc from 'fast-check';
import { expect, test } from 'vitest';
import { stringify } from 'yaml';
import { describeEdit } from '../../gateway/admin/settings/describe-edit.ts';
import { diffSettings } from '../../gateway/admin/settings/diff-settings.ts';
import { settingsText } from '../../gateway/admin/settings/settings-view.ts';
import { loadSettings } from '../../gateway/config/load-settings.ts';
import { formatProblems } from '../../gateway/config/problems/format-problems.ts';
import { settingsSchema } from '../../gateway/config/schema/settings-schema.ts';
import { isMasked, type Mark, marksIn } from '../../gateway/shared/schema/marks.ts';
import { digestSecret } from '../../gateway/shared/secrets.ts';
import { capabilityCases } from '../support/capability-cases.ts';
import { type ConfigFolder, configFolder } from '../support/config-folder.ts';
import { makeCertificate } from '../support/make-certificate.ts';
import { settingPaths } from '../support/setting-paths.ts';
import { tunedBounds } from '../support/tuned-bounds.ts';

const secret = 'Xq7Zw9Kv_Rt4';

const ofCapabilities = (await capabilityCases()).flatMap(({ secretSetting = [] }) => secretSetting);

const marked = marksIn(settingsSchema)
  .filter(({ mark }) => isMasked(mark))
  .map(({ path, mark }) => ({ mark, path: path.join('.').replace(/\.\[\]$/, '') }));

/** The settings with a mark. Text in a wrong place of these settings may be a piece of a secret. */
const withMarks = new Set(marked.map(({ path }) => path.split('.')[0]));

/** Parts of settings with a mark that are shown, because they are valid with every text. */
const shownInCore =
  /^((listen|admin)\.(host|port)|admin\.hosts|redis\.(onFailure|prefix|sentinel\.name)|keys\.directory|keys\.\[\]\.(id|(changes\.\[\]\.)?plan))$/;
const shownInCapabilities = ofCapabilities.flatMap(({ shownAsStated = [] }) => shownAsStated);
const isShownAsStated = (path: string) => shownInCore.test(path) || shownInCapabilities.includes(path);

/** URLs with the secret. Each URL is broken in another way. */
const brokenUrls: Readonly<Record<string, string>> = {
  'with a slash in the password': `redis://:${secret}/${secret}@host:6379`,
  'whose password looks like a port': `rediss://me:1/${secret}@host:6379`,
  'with an @ and a slash in the password': `redis://me:a@${secret}/b@host`,
  'with a percent sign in the password': `redis://me:${secret}%@host`,
  'with a port out of range': `redis://:${secret}@host:99999`,
  'with unknown parameters': `redis://host?token=${secret}&x=${secret}`,
};
/** Secrets that stand alone, and a URL that contains one as a path. */
const brokenTexts: Readonly<Record<string, string>> = {
  'as the only text': secret,
  'with blanks': `${secret} ${secret}`,
  'behind a dash': `-----BEGIN ${secret}`,
  'in a path': `https://host.example:99999/${secret}`,
  'with a brace': `{${secret}`,
};

/** A valid configuration. Some settings need other settings beside them. */
const sound: Members = {
  environment: 'test',
  baseUrl: 'https://api.example.com/v1',
  upstream: { url: 'https://backend:3000' },
  plans: { free: { perMinute: 60 } },
  keys: [],
  redis: { url: 'rediss://r' },
  ...Object.assign({}, ...ofCapabilities.map(({ settings }) => settings)),
};
const redis: Readonly<Record<string, Members>> = {
  cluster: { cluster: ['redis://r'] },
  sentinel: { sentinel: { name: 'main', hosts: ['s:1'] } },
  other: { url: 'rediss://r' },
};
const certificate = makeCertificate();
const files = {
  password: 'password',
  'cert.pem': certificate.cert,
  'key.pem': certificate.key,
  ...Object.fromEntries(ofCapabilities.map(({ name, secretFile = '' }) => [`${name}-secret`, secretFile])),
};

type Members = Readonly<Record<string, unknown>>;

function configWith(path: string, value: unknown, others: Members = {}): Members {
  const steps = path.split('.');
  const [first = '', second = ''] = steps;
  const base = { ...sound, ...(first === 'redis' && { redis: redis[second] ?? redis.other }), ...others };
  const parent = steps.slice(0, -1);
  const files = /\.(?:cert|key)$/.test(path) ? Object.entries({ cert: 'cert.pem', key: 'key.pem' }) : [];
  const whole = files.reduce<unknown>(
    (config, [name, file]) => withValue(config, [...parent, name], file),
    base,
  );
  return withValue(whole, steps, value) as Members;
}

function withValue(config: unknown, [name, ...rest]: readonly string[], value: unknown): unknown {
  if (name === undefined) return value;
  if (name === '[]') return [withValue(Object(config)[0], rest, value)];
  const key = name === '*' ? 'free' : name;
  return { ...Object(config), [key]: withValue(Object(config)[key], rest, value) };
}

/** All texts that the gateway makes from a configuration: the report, the problems for the log and `/readyz`, or the settings. */
async function outputOf(
  { file, write }: ConfigFolder,
  main: string,
): Promise<{ readonly isValid: boolean; readonly text: string }> {
  write('tollgate.yaml', main);
  const loaded = loadSettings({ file, env: {} });
  return loaded.kind === 'valid'
    ? { isValid: true, text: (await settingsText(loaded.settings)) + loaded.warnings.join('\n') }
    : { isValid: false, text: formatProblems(loaded.problems) + JSON.stringify(loaded.problems) };
}

function expectNothingOf(secret: string, text: string, where: string): void {
  for (let start = 0; start + 4 <= secret.length; start++) {
    expect(text.includes(secret.slice(start, start + 4)), `${where}\n${text}`).toBe(false);
  }
}

/** The upstreams have the members of the one upstream, and the limits of a plan occur in several of its members. */
const paths = settingPaths().filter((path) => !/^(upstreams\.|plans\.\*\.\w+\.)/.test(path));

test.each(paths)('no output has a secret of a broken URL in %s', async (path) => {
  const folder = configFolder(files);
  for (const [how, url] of Object.entries(brokenUrls)) {
    const { text } = await outputOf(folder, stringify(configWith(path, url)));
    expectNothingOf(secret, text, how);
  }
});

test.each(paths.filter((path) => withMarks.has(path.split('.')[0]) && !isShownAsStated(path)))(
  'no output has a secret that stands in %s, and a report names the setting',
  async (path) => {
    const folder = configFolder(files);
    const name = path.split('.').findLast((step) => /\w/.test(step)) ?? '';
    for (const [how, broken] of Object.entries(brokenTexts)) {
      const flow = { collectionStyle: 'flow', lineWidth: 0 } as const;
      for (const main of [
        stringify(configWith(path, broken)),
        stringify(configWith(path, [broken])),
        stringify(configWith(path, { [broken]: 1 }), flow),
      ]) {
        const { isValid, text } = await outputOf(folder, main);
        expectNothingOf(secret, text, how);
        if (!isValid) expect(text, how).toContain(name);
      }
    }
  },
);

test('a setting whose name says that it is about a secret has a mark', () => {
  const named = paths.filter((path) => /(?:sha256|secretFile|passwordFile|username)$/.test(path));
  expect(named.filter((path) => !marked.some((one) => one.path === path))).toEqual([]);
});

/** A valid value with the secret, for each kind of mark. A secret file has the secret in its name. */
function soundValue(path: string, { secret: kind, secretInUrl }: Mark, word: string): unknown {
  if (kind === 'digest') return digestSecret(word);
  if (kind === true) return word;
  const ofCapability = ofCapabilities.find(({ name }) => path.split('.')[0] === name);
  if (ofCapability !== undefined) return ofCapability.url(word);
  return secretInUrl && path === 'redis.url' ? `rediss://me:${word}@r` : undefined;
}

/** The members that a marked setting needs beside it. */
const beside: Readonly<Record<string, Members>> = {
  admin: { admin: { tokens: [{ name: 'al', may: 'read', sha256: digestSecret('al') }] } },
  'redis.username': { redis: { url: 'redis://r', passwordFile: 'password' } },
  'redis.sentinel.username': {
    redis: { sentinel: { name: 'main', hosts: ['s:1'], passwordFile: 'password' } },
  },
  keys: { keys: [{ id: 'acme', plan: 'free', secrets: [{ sha256: digestSecret('acme') }] }] },
};

/** The servers of a Redis Cluster may have no credentials in their URLs, so no valid value has a secret. */
const withValidSecrets = marked.filter(({ path }) => path !== 'redis.cluster');

test.each(withValidSecrets)('no output has the valid secret in $path', async ({ path, mark }) => {
  const random = fc.string({
    unit: fc.constantFrom(...'BCDFGHJKLMNPQRSTVWXZ0123456789'),
    minLength: 14,
    maxLength: 30,
  });
  const setting = path.split('.')[0] ?? '';
  const main = (word: string): Members =>
    configWith(path, soundValue(path, mark, word), beside[path] ?? beside[setting]);
  const contents: Readonly<Record<string, string>> = { key: certificate.key, passwordFile: 'password' };
  const { secretFile = '' } = ofCapabilities.find(({ name }) => name === setting) ?? {};
  const folder = configFolder(files);
  const load = (config: Members) => {
    const flow = { collectionStyle: 'flow', lineWidth: 0 } as const;
    const lines = Object.entries(config).map(([name, value]) => `${name}: ${stringify(value, flow)}`);
    folder.write('tollgate.yaml', lines.join(''));
    return loadSettings({ file: folder.file, env: {} });
  };
  await fc.assert(
    fc.asyncProperty(random, random, async (one, other) => {
      const secrets = [one, other];
      for (const word of secrets) folder.write(word, contents[path.split('.').at(-1) ?? ''] ?? secretFile);
      const [before, after] = secrets.map((word) => load(main(word)));
      if (before?.kind !== 'valid' || after?.kind !== 'valid')
        throw new Error(JSON.stringify([before, after]));
      const shown = await Promise.all([before, after].map(({ settings }) => settingsText(settings)));
      const edits = await describeEdit(before.settings, after.settings, tunedBounds({}));
      const diff = diffSettings(JSON.parse(shown[0] ?? ''), JSON.parse(shown[1] ?? ''));
      const broken = load({ ...main(one), [setting]: withUnknownField(main(one)[setting]) });
      if (broken.kind === 'valid') throw new Error('a configuration with an unknown field is valid');
      const reports = formatProblems(broken.problems) + JSON.stringify(broken.problems);
      const text = [...shown, ...before.warnings, JSON.stringify([edits, diff]), reports].join('\n');
      for (const word of mark.secret === 'digest' ? secrets.map(digestSecret) : secrets) {
        expect(text.includes(word), `${word}\n${text}`).toBe(false);
      }
    }),
    { numRuns: 5 },
  );
});

function withUnknownField(setting: unknown): unknown {
  return Array.isArray(setting) ? [{ ...setting[0], zzz: 1 }] : { ...Object(setting), zzz: 1 };
}
