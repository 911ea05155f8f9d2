import { describe, expect, it, test } from 'vitest';
import { settingsText } from '../../../../gateway/admin/settings/settings-view.ts';
import { loadSettings } from '../../../../gateway/config/load-settings.ts';
import { formatProblems } from '../../../../gateway/config/problems/format-problems.ts';
import { restartNeeded } from '../../../../gateway/config/watch-settings.ts';
import { configFolder, mainDocument, redisLine } from '../../../support/config-folder.ts';

/** Secrets of 24 and 64 octets, the shortest and the longest. */
const [short, long] = [secretOf(24), secretOf(64)];
const pathToken = 'T0PATHTOKEN';
const hook = `https://hooks.example.com/${pathToken}`;

function secretOf(octets: number): string {
  return `whsec_${Buffer.alloc(octets, 7).toString('base64')}`;
}

function load(notify: string, files: Readonly<Record<string, string>> = {}) {
  const main = { 'tollgate.yaml': `${mainDocument}notify:\n${notify}${redisLine}` };
  const folder = configFolder({ hook: `${short}\n`, ...files, ...main });
  const loaded = loadSettings({ file: folder.file, env: {} });
  const report = loaded.kind === 'invalid' ? formatProblems(loaded.problems) : '';
  return { loaded, report: report.replaceAll(folder.pathOf(''), '') };
}

function settingsOf(notify: string, files?: Readonly<Record<string, string>>) {
  const { loaded, report } = load(notify, files);
  if (loaded.kind === 'invalid') throw new Error(report);
  return loaded.settings;
}

const receiver = (members: string) => `  - { secretFile: hook, ${members} }\n`;
const banned = (url: string) => receiver(`url: ${JSON.stringify(url)}, events: [key.banned]`);

describe('a receiver', () => {
  it('gets the events that it states, each once, and the secrets of its file', () => {
    const { notify } = settingsOf(receiver(`url: ${hook}, events: [key.banned, target.down, key.banned]`), {
      hook: `${long}\r\n${short}\r\n`,
    });
    expect(notify).toEqual([
      expect.objectContaining({
        url: hook,
        events: ['key.banned', 'target.down'],
        secrets: [long, short],
        at: [],
      }),
    ]);
    expect(notify[0]?.id).toMatch(/^[0-9a-f]{12}$/);
  });

  it('of quota.threshold gets 80 and 100 percent, or the percentages that it states, in their order', () => {
    const { notify, thresholds } = settingsOf(
      receiver(`url: ${hook}, events: [quota.threshold]`) +
        receiver('url: https://b.example.com, events: [quota.threshold], at: [90, 5, 90]'),
    );
    expect(notify.map(({ at }) => at)).toEqual([
      [80, 100],
      [5, 90],
    ]);
    expect(thresholds).toEqual([5, 80, 90, 100]);
  });

  it('may have filters, and a key that the configuration does not have is a warning', () => {
    const filters = 'keys: [acme, acme, gone], plans: [free]';
    const { loaded } = load(receiver(`url: ${hook}, events: [key.banned], ${filters}`));
    if (loaded.kind === 'invalid') throw new Error('the configuration is valid');
    expect(loaded.settings.notify).toMatchObject([{ keys: ['acme', 'gone'], plans: ['free'] }]);
    expect(loaded.warnings.filter((warning) => warning.includes('notify[0].keys'))).toEqual([
      expect.stringMatching(/tollgate\.yaml:\d+:\d+: `notify\[0\]\.keys\[2\]` names no key, so/),
    ]);
  });

  it.each(['http://127.0.0.1:1/a', 'http://127.9.9.9', 'http://[::1]:8080', 'http://localhost/hook'])(
    'at the loopback address %s may do without https',
    (url) => {
      expect(settingsOf(banned(url)).notify).toHaveLength(1);
    },
  );

  it('can be added, changed and removed without a restart, also by its secret alone', () => {
    const [before, after] = [settingsOf(banned(hook)), settingsOf(banned(hook), { hook: long })];
    expect(restartNeeded(before, after)).toEqual([]);
    expect(before.version).not.toBe(after.version);
  });
});

test('without `notify`, no receiver gets events, and no threshold is watched', () => {
  const { file } = configFolder();
  expect(loadSettings({ file, env: {} })).toMatchObject({ settings: { notify: [], thresholds: [] } });
});

test('settings show a receiver without the path of its URL and without its secret', async () => {
  const text = await settingsText(settingsOf(banned(`${hook}?key=${pathToken}`)));
  expect(JSON.parse(text).notify).toEqual([
    {
      id: expect.stringMatching(/^[0-9a-f]{12}$/),
      url: 'https://hooks.example.com/***',
      secretFile: '***',
      events: ['key.banned'],
      at: [],
      secretDigestStarts: [expect.stringMatching(/^[0-9a-f]{8}$/)],
    },
  ]);
  expect(text).not.toContain(pathToken);
  expect(text).not.toContain('whsec_');
});

describe('an error', () => {
  it.each([
    ['http without loopback', banned(`http://hooks.example.com/${pathToken}`), 'must begin with https://'],
    ['http to a name that only begins like loopback', banned('http://127.0.0.1.example.com'), 'https://'],
    ['another scheme', banned('ftp://localhost/a'), 'must begin with https://'],
    ['a user', banned(`https://${pathToken}@h.example.com/a`), 'must have no user and no password'],
    ['a password', banned(`https://:${pathToken}@h.example.com/a`), 'must have no user and no password'],
    ['a fragment', banned(`${hook}#a`), 'must have no fragment'],
    ['a text that is no URL', banned(`https//${pathToken}`), '`notify[0].url` must be an https URL'],
    ['a blank in the host', banned(`https://hooks.exa mple.com/${pathToken}`), 'must be an https URL'],
    ['a blank in the path', banned(`https://hooks.example.com/a ${pathToken}`), 'must be an https URL'],
    [
      'a blank without quotes',
      receiver(`url: https://hooks.exa mple.com/${pathToken}, events: [key.banned]`),
      'must be an https URL',
    ],
    ['a fragment without a path', banned(`https://hooks.example.com#${pathToken}`), 'must have no fragment'],
    ['a port that is too large', banned(`https://h.example.com:99999?${pathToken}`), 'must be an https URL'],
    [
      'one URL twice',
      banned(hook) + banned(hook),
      '`notify[1].url`: this URL is already taken by `notify[0].url`',
    ],
    [
      'one URL twice in two forms',
      banned('https://h.example.com') + banned('https://h.example.com:443/'),
      'taken',
    ],
    ['no events', receiver(`url: ${hook}`), '`notify[0].events` is missing'],
    ['an empty list of events', receiver(`url: ${hook}, events: []`), 'at least one type'],
    ['a misspelt event', receiver(`url: ${hook}, events: [key.band]`), 'did you mean `key.banned`?'],
    [
      'an unknown event',
      receiver(`url: ${hook}, events: [all]`),
      'the types are: quota.threshold, key.banned,',
    ],
    [
      '`at` without its event',
      receiver(`url: ${hook}, events: [key.banned], at: [80]`),
      '`notify[0].at` needs',
    ],
    ['`at` of 0', receiver(`url: ${hook}, events: [quota.threshold], at: [0]`), 'from 1 to 100'],
    ['`at` above 100', receiver(`url: ${hook}, events: [quota.threshold], at: [101]`), 'from 1 to 100'],
    [
      'a filter for a plan that does not exist',
      receiver(`url: ${hook}, events: [key.banned], plans: [fre]`),
      '`notify[0].plans[0]` names no plan; did you mean `free`?',
    ],
    [
      'a filter for an operation that does not exist',
      receiver(`url: ${hook}, events: [operation.sunset], operations: [getPets]`),
      '`notify[0].operations[0]`',
    ],
    [
      'an event without a key and a filter by key',
      receiver(`url: ${hook}, events: [key.banned, target.down], keys: [acme]`),
      '`notify[0].events[1]`: no event of the type `target.down` matches `keys`',
    ],
    [
      'filters that no event can match together',
      receiver(`url: ${hook}, events: [operation.sunset], operations: [any], keys: [acme]`),
      'no event of the type `operation.sunset` matches `keys`',
    ],
    ['an empty filter', receiver(`url: ${hook}, events: [key.banned], keys: []`), 'at least one of the ids'],
    ['no secret', `  - { url: ${hook}, events: [key.banned] }\n`, '`notify[0].secretFile` is missing'],
    [
      'a missing file',
      `  - { url: ${hook}, events: [key.banned], secretFile: gone }\n`,
      'this file does not exist',
    ],
    [
      '21 receivers',
      Array.from({ length: 21 }, (_, n) => banned(`${hook}${n}`)).join(''),
      'at most 20 receivers',
    ],
  ])('names the place of %s, and shows no path of a URL', (_what, notify, message) => {
    const { report } = load(notify);
    expect(report).toMatch(/^tollgate\.yaml:\d+:\d+: /);
    expect(report).toContain(message);
    expect(report).not.toContain(pathToken);
  });

  it('shows a URL up to the slash after its host', () => {
    const { report } = load(receiver(`url: ${hook}, events: [key.band]`));
    expect(report).toContain('url: https://hooks.example.com/***');
  });

  it('about a secret in place of the name of its file does not show the secret', () => {
    const { report } = load(`  - { url: ${hook}, events: [key.banned], secretFile: ${long} }\n`);
    expect(report).toContain('this file does not exist');
    expect(report).not.toContain(long.slice(6, 30));
  });

  it.each([
    ['an empty file', '', 'hook:1:1: this file has no secret'],
    ['a file with only a line break', '\n', 'hook:1:1: this file has no secret'],
    ['another text', 'open sesame\n', 'hook:1:1: this line has no secret of a webhook'],
    ['a fault in the second line', `${short}\nopen sesame\n`, 'hook:2:1: this line has no secret'],
    ['three secrets', `${short}\n${long}\n${secretOf(30)}\n`, 'hook:3:1: this file may have at most 2 lines'],
    ['one secret twice', `${short}\n${short}\n`, 'hook:2:1: this line repeats the secret'],
    ['a text that is no base64', 'whsec_open sesame\n', 'hook:1:1: the text after `whsec_` is not base64'],
    ['base64 without padding', `${long.replaceAll('=', '')}\n`, 'is not base64 with padding'],
    ['a short secret', `${secretOf(23)}\n`, 'hook:1:1: this secret has 23 octets'],
    ['a long secret', `${secretOf(65)}\n`, 'hook:1:1: this secret has 65 octets'],
  ])('in a secret file names the line of %s, without its content', (_what, content, message) => {
    const { report } = load(banned(hook), { hook: content });
    expect(report).toContain(message);
    for (const text of ['sesame', short.slice(6), long.slice(6, 30)]) expect(report).not.toContain(text);
  });
});
