import { expect, test } from 'vitest';
import { stringify } from 'yaml';
import { settingsText } from '../../gateway/admin/settings/settings-view.ts';
import { loadSettings } from '../../gateway/config/load-settings.ts';
import { formatProblems } from '../../gateway/config/problems/format-problems.ts';
import { type ConfigFolder, configFolder } from '../support/config-folder.ts';
import { makeCertificate } from '../support/make-certificate.ts';
import { settingPaths } from '../support/setting-paths.ts';

const secret = 'Xq7Zw9Kv_Rt4';

/** Settings that can have no secret, except in a URL that an operator wrote there. A setting that is not listed can have one. */
const withoutSecrets =
  /^(environment|baseUrl|workers|(listen|admin)\.(host|port)|admin\.hosts|upstreams?\b.*|plans\..*|api|(limits|leaks|docs)Path|selfService\..*|bans\..*|addressBucket\..*|bodyBytesMax|usage\..*|cors\..*|hsts\..*|trustedProxies|redis\.(onFailure|prefix|sentinel\.name)|keys\.directory|keys\.\[\]\.(id|plan)|notify\.\[\]\.(keys|plans|operations))$/;

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
  notify: [{ url: 'https://hooks.example.com/', secretFile: 'hook', events: ['key.banned'] }],
};
const redis: Readonly<Record<string, Members>> = {
  cluster: { cluster: ['redis://r'] },
  sentinel: { sentinel: { name: 'main', hosts: ['s:1'] } },
  other: { url: 'rediss://r' },
};
const certificate = makeCertificate();
const files = { 'cert.pem': certificate.cert, 'key.pem': certificate.key, hook: `whsec_${'a'.repeat(40)}` };

type Members = Readonly<Record<string, unknown>>;

function configWith(path: string, value: unknown): Members {
  const steps = path.split('.');
  const [first = '', second = ''] = steps;
  const base = first === 'redis' ? { ...sound, redis: redis[second] ?? redis.other } : sound;
  const parent = steps.slice(0, -1);
  const beside = /\.(?:cert|key)$/.test(path) ? Object.entries({ cert: 'cert.pem', key: 'key.pem' }) : [];
  const whole = beside.reduce<unknown>(
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
const paths = settingPaths().filter((path) => !/^(upstreams|plans\.\*\.(changes|guard|trial))\./.test(path));

test.each(paths)('no output has a secret of a broken URL in %s', async (path) => {
  const folder = configFolder(files);
  for (const [how, url] of Object.entries(brokenUrls)) {
    const { text } = await outputOf(folder, stringify(configWith(path, url)));
    expectNothingOf(secret, text, how);
  }
});

test.each(paths.filter((path) => !withoutSecrets.test(path)))(
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
