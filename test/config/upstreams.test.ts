import { describe, expect, test } from 'vitest';
import { configSizes } from '../../gateway/config/config-sizes.ts';
import { loadSettings } from '../../gateway/config/load-settings.ts';
import { formatProblems } from '../../gateway/config/problems/format-problems.ts';
import { configFolder, mainDocument } from '../support/config-folder.ts';

/**
 * Loads a small configuration with the given text in place of `upstream`, and with an operation for each given
 * `x-upstream`.
 */
function load(upstreams: string, ...ofOperations: string[]) {
  const operations = ofOperations.map(
    (name, i) => `  /a${i}: { get: { operationId: a${i}, x-upstream: ${name} } }\n`,
  );
  const folder = configFolder({
    'tollgate.yaml': mainDocument.replace(/upstream: .*\n/, upstreams),
    'openapi.yaml': `paths:\n  /pets: { get: { operationId: listPets } }\n${operations.join('')}`,
  });
  const loaded = loadSettings({ file: folder.file, env: { TIMEOUT: '3s' } });
  const report = loaded.kind === 'invalid' ? formatProblems(loaded.problems) : '';
  return { loaded, report: report.replaceAll(folder.pathOf(''), '') };
}

test('each upstream has a name, timeouts and a host; the first serves operations without x-upstream', () => {
  const { loaded } = load(
    `upstreams:
  store: { url: http://store:3000 }
  orders:
    url: http://orders:80/
    health: /up
    host: target
    timeouts: { connect: 500ms, headers: "\${TIMEOUT}", total: 1m }
`,
    'orders',
  );
  expect(loaded).toMatchObject({
    kind: 'valid',
    warnings: [],
    settings: {
      upstreams: [
        { name: 'store', url: 'http://store:3000', health: undefined, host: 'keep', timeouts: {} },
        {
          name: 'orders',
          url: 'http://orders',
          health: '/up',
          host: 'target',
          timeouts: { connectMs: 500, headersMs: 3_000, totalMs: 60_000 },
        },
      ],
      operations: [
        { id: 'listPets', upstream: 'store' },
        { id: 'a0', upstream: 'orders' },
      ],
    },
  });
});

test('the short form may have the same fields; its name is default', () => {
  const { loaded } = load('upstream: { url: http://b, host: target, timeouts: { total: 5m } }\n', 'default');
  expect(loaded).toMatchObject({
    settings: { upstreams: [{ name: 'default', host: 'target', timeouts: { totalMs: 300_000 } }] },
  });
});

test('an upstream may have a name that every object inherits', () => {
  const { loaded } = load(
    'upstreams: { constructor: { url: http://b }, toString: { url: http://c } }\n',
    'toString',
  );
  expect(loaded).toMatchObject({ settings: { upstreams: [{ name: 'constructor' }, { name: 'toString' }] } });
});

test('an upstream without an operation gets a warning', () => {
  const { loaded } = load('upstreams: { store: { url: http://a }, orders: { url: http://b } }\n');
  expect(loaded).toMatchObject({ warnings: [expect.stringMatching(/upstream `orders`/)] });
});

const many = (count: number) =>
  `upstreams:\n${Array.from({ length: count }, (_, i) => `  up${i}: { url: http://b }\n`).join('')}`;

describe('the upstreams of a configuration', () => {
  test.each<[rule: string, upstreams: string, report: string]>([
    [
      'both forms',
      'upstream: { url: http://a }\nupstreams: { b: { url: http://b } }\n',
      'tollgate.yaml:4:1: `upstreams` and `upstream` exclude each other; move `upstream` into `upstreams`, under a name',
    ],
    [
      'neither',
      '',
      'tollgate.yaml:1:1: `upstream` is missing; write a mapping with url, or several by name as `upstreams`',
    ],
    [
      'a misspelt name of the setting',
      'upstraem: { url: http://a }\n',
      'tollgate.yaml:3:1: the field `upstraem` is unknown; did you mean `upstream`?',
    ],
    ['none', 'upstreams: {}\n', 'tollgate.yaml:3:12: `upstreams` must name at least one upstream'],
    [
      'a list',
      'upstreams: [{ url: http://b }]\n',
      'tollgate.yaml:3:12: `upstreams` must be a mapping of names to upstreams',
    ],
    [
      'a name that is a number',
      'upstreams: { 1: { url: http://b } }\n',
      'tollgate.yaml:3:14: `upstreams.1` must be an upstream name of 1 to 64 of the characters A-Z a-z 0-9 _ -, a letter first',
    ],
    [
      'a field that is not known',
      'upstreams: { b: { url: http://b, timeout: { total: 5s } } }\n',
      'tollgate.yaml:3:34: the field `timeout` is unknown; did you mean `timeouts`?',
    ],
    [
      'another host',
      'upstreams: { b: { url: http://b, host: c } }\n',
      'tollgate.yaml:3:40: `upstreams.b.host` must be keep or target',
    ],
    ...['49ms', '31s', '2', '1.5s', '-1s', '0s'].map((written): [string, string, string] => [
      `a connect timeout of ${written}`,
      `upstreams: { b: { url: http://b, timeouts: { connect: "${written}" } } }\n`,
      'tollgate.yaml:3:55: `upstreams.b.timeouts.connect` must be a duration from 50ms to 30s such as 500ms or 2s',
    ]),
    [
      'a wait for the head that the whole exchange cannot last',
      'upstream: { url: http://b, timeouts: { headers: 10s, total: 9s } }\n',
      'tollgate.yaml:3:49: `upstream.timeouts.headers` must not be longer than `upstream.timeouts.total`',
    ],
    [
      'a wait for the head that is longer than the default of the whole exchange',
      'upstreams: { b: { url: http://b, timeouts: { headers: 3m } } }\n',
      'tollgate.yaml:3:55: `upstreams.b.timeouts.headers` must not be longer than `upstreams.b.timeouts.total`, which is 2m if it is not set',
    ],
    [
      'more than there may be',
      many(configSizes.upstreamsMax + 1),
      `tollgate.yaml:${4 + configSizes.upstreamsMax}:3: \`upstreams\` may hold at most 32 upstreams`,
    ],
  ])('%s: the first problem is reported with its place', (_rule, upstreams, report) => {
    expect(load(upstreams).report.split('\n')[0]).toBe(report);
  });

  test.each(['50ms', '30s'])('a connect timeout of %s is valid', (written) => {
    const { report } = load(`upstream: { url: http://b, timeouts: { connect: ${written} } }\n`);
    expect(report).toBe('');
  });

  test('the largest number of upstreams is valid', () => {
    expect(load(many(configSizes.upstreamsMax)).report).toBe('');
  });

  test('an x-upstream that does not exist is reported with its place in the API document', () => {
    const { report } = load('upstreams: { store: { url: http://a }, orders: { url: http://b } }\n', 'order');
    expect(report).toBe(
      'openapi.yaml:3:46: `x-upstream` names no upstream of the configuration; did you mean `orders`?\n' +
        '  3 |   /a0: { get: { operationId: a0, x-upstream: order } }\n' +
        '    |                                              ^',
    );
  });
});
