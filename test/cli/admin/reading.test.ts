import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest';
import { callerList } from '../../../gateway/admin/words/callers.js';
import { changeList } from '../../../gateway/admin/words/changes.js';
import { listCsv } from '../../../gateway/admin/words/csv.js';
import { sayAt } from '../../../gateway/cli/output/list.ts';
import { widthOf } from '../../../gateway/shared/terminal/text-width.ts';
import { askAdmin, makeToken } from '../../support/admin-client.ts';
import { freshWindows } from '../../support/fresh-windows.ts';
import { startGatewayHere } from '../../support/gateway-here.ts';
import { makeKey, plans, type RunningGateway, testConfig } from '../../support/gateway-process.ts';
import { runInTerminal } from '../../support/pseudo-terminal.ts';
import { okResponse, type RecordingBackend, startRecordingBackend } from '../../support/recording-backend.ts';
import { freshPrefix, redisUrl } from '../../support/redis.ts';
import { runTollgate } from '../../support/run-tollgate.ts';
import { patientGateway, patientStore } from '../../support/tuning.ts';
import { withinOneMinute } from '../../support/within-one-minute.ts';

const caller = { requests: 1, clientErrors: 0, serverErrors: 0, lastSeenMs: 0 };
const none = { operationId: 'listPets', fromAt: '', toAt: '', caller };
const token = makeToken('read');
const acme = makeKey({ id: 'acme', plan: 'enterprise', limits: { perMinute: 1_000, perDay: 5 } });
const long = makeKey({ id: `long-${'x'.repeat(94)}`, plan: 'business' });
const others = Array.from({ length: 8 }, (_, index) => makeKey({ id: `customer-${index}`, plan: 'pro' }));
const few = makeKey({ id: 'few', plan: 'few' });
const fewest = makeKey({ id: 'fewest', plan: 'few', concurrent: 2 });
const once = makeKey({ id: 'once', plan: 'enterprise', limits: { perDay: 1 } });
const keys = [acme, long, few, fewest, once, ...others].map(({ entry }) => entry);
const named = keys.map((entry) => ({ ...entry, name: `The company \u202e of ${entry.id} 猫` }));

let backend: RecordingBackend;
let gateway: RunningGateway;
let env: Record<string, string>;
beforeAll(async () => {
  backend = await startRecordingBackend({
    react: ({ target }, socket) => socket.write(okResponse('{}', target.endsWith('/404') ? 404 : 200)),
  });
  gateway = await startGatewayHere(
    testConfig({
      upstream: { url: backend.url },
      plans: { ...plans, few: { perMinute: 60, concurrent: 3 } },
      keys: named,
      admin: { host: '127.0.0.1', port: 0, tokens: [token.entry] },
      bans: { after: 1_000 },
    }),
    { tuning: { windowsMs: freshWindows(Date.now()), bounds: patientGateway } },
  );
  env = { TOLLGATE_ADMIN: gateway.adminUrl, TOLLGATE_ADMIN_TOKEN: token.token };
  // All refusals are in one minute, so that one line shows them all.
  await withinOneMinute(10_000);
  await send(acme.secret, 9, '/pets');
  await send(long.secret, 2, '/pets/404');
});
afterAll(async () => {
  await gateway.stop('SIGKILL');
  await backend.close();
});

async function send(secret: string, times: number, path: string): Promise<void> {
  for (let request = 0; request < times; request++) {
    const headers = { authorization: `Bearer ${secret}` };
    await (await fetch(`${gateway.baseUrl}${path}`, { headers })).arrayBuffer();
  }
}

async function ask(path: string) {
  const port = Number(new URL(gateway.adminUrl).port);
  return (await askAdmin(port, `/api/v1${path}`, { token: token.token })).body;
}

async function run(...args: string[]) {
  const { exitCode, stdout, stderr } = await runTollgate(args, env);
  expect({ exitCode, stderr }).toEqual({ exitCode: 0, stderr: '' });
  return stdout;
}

/** The members whose values change with each request. */
const moments =
  /"(sentence|ageMs|lastSeenMs|resetMs|toAt|fromAt|requestsPerSecond|failuresPerSecond|inFlight|connections|p50Ms|p95Ms|p99Ms|upstreamP50Ms|upstreamP99Ms|2xx|3xx|4xx|429|5xx)":("[^"]*"|[\d.]+),?/g;

function lasting(body: unknown): string {
  return JSON.stringify(body).replace(moments, '').replace(/,}/g, '}');
}

describe('--json', () => {
  it.each([
    ['keys list', '/keys', undefined],
    ['keys list --state limited', '/keys?state=limited', undefined],
    ['keys list --plan pro --sort id --limit 3', '/keys?plan=pro&sort=id&limit=3', undefined],
    ['keys list --q STOMER-7', '/keys?q=STOMER-7', undefined],
    ['keys show acme', '/keys/acme', undefined],
    ['why acme', '/keys/acme', 'why'],
    ['callers listPets', '/operations/listPets/callers', undefined],
    [
      'callers listPets --from 2026-01-01 --to 2026-01-02',
      '/operations/listPets/callers?from=2026-01-01&to=2026-01-02',
      undefined,
    ],
    ['operations', '/operations', undefined],
    ['operations --deprecated --from 2026-01-01', '/deprecated?from=2026-01-01&limit=1000', undefined],
    ['usage acme', '/keys/acme/usage?step=hour', undefined],
    ['usage acme --step day', '/keys/acme/usage?step=day', undefined],
    ['changes', '/changes', undefined],
    ['events --kind change,ban --limit 3', '/events?kind=change%2Cban&limit=3', undefined],
  ])('of %s gives the response of the API at %s', async (command, path, member) => {
    const saidNow = async () => {
      const said = await ask(path);
      return lasting(member === undefined ? said : said[member]);
    };
    // An hour may end during the command, so its output must match a response from before or after the command.
    const before = await saidNow();
    const given = JSON.parse(await run(...command.split(' '), '--json'));
    expect([before, await saidNow()]).toContain(lasting(given));
  });

  it('of processes gives the processes of the state', async () => {
    const given = JSON.parse(await run('processes', '--json'));
    const { isComplete, answeredBy, processes } = await ask('/state');
    expect(lasting(given)).toBe(lasting({ isComplete, answeredBy, processes }));
  });

  it('of top --once gives the state and the keys of its two lists', async () => {
    const given = JSON.parse(await run('top', '--once', '--json'));
    const [state, busiest, mostRefused] = await Promise.all([
      ask('/state'),
      ask('/keys?sort=offered&limit=10'),
      ask('/keys?sort=refused&limit=10'),
    ]);
    // The rates in the verdict's sentence change every second.
    for (const each of [given.state, state]) delete each.verdict.sentence;
    expect(lasting(given)).toBe(lasting({ state, busiest: busiest.keys, mostRefused: mostRefused.keys }));
  });
});

describe('the text output', () => {
  const commands = [
    'top --once',
    'top',
    'keys list',
    'keys show acme',
    `keys show ${long.entry.id}`,
    'why acme',
    'callers listPets',
    'operations',
    'operations --deprecated',
    'usage acme',
    'processes',
    'changes',
    'usage nothing --help',
  ];

  it.each(commands)(
    'of %s in a pipe is not cut, and has no control sequence of a terminal',
    async (command) => {
      const stdout = await run(...command.split(' '));
      expect(stdout).not.toMatch(/[^\P{C}\n]|\S…\S/u);
      expect(stdout.length).toBeGreaterThan(0);
    },
  );

  it('is as wide as the terminal, or as COLUMNS', async () => {
    const widthAt = async (more: Record<string, string>, columns: number) => {
      const terminal = await runInTerminal(['keys', 'list'], { ...env, ...more }, { columns, rows: 40 });
      await terminal.ended();
      return Math.max(...terminal.lines().map(widthOf));
    };
    const piped = (await runTollgate(['keys', 'list'], { ...env, COLUMNS: '90' })).stdout;
    const widths = piped.split('\n').map(widthOf);
    expect(Math.max(...widths)).toBeGreaterThan(80);
    expect(Math.max(...widths)).toBeLessThanOrEqual(90);
    expect(await Promise.all([widthAt({}, 100), widthAt({ COLUMNS: '95' }, 200)])).toEqual([100, 95]);
  });

  it('of keys list has one line for a key, the most refused key first, with figures at the right', async () => {
    const [titles = '', first = '', second = ''] = (await run('keys', 'list')).split('\n');
    expect(titles).toMatch(/^KEY +PLAN +STATE +FULLEST WINDOW +REFUSED 24H +REQUESTS 24H +LAST SEEN +NAME$/);
    expect(first).toMatch(/^acme +enterprise +limited +day 5\/5 +4 +9 +(now|\d+ s ago) +The/);
    expect(second).toMatch(/^long-x{94} +business +ok +minute 2\/1,000 +0 +2 /);
    const end = (line: string, text: string) => line.indexOf(text) + text.length;
    expect(end(first, '  4')).toBe(end(titles, 'REFUSED 24H'));
  });

  it('of keys list --older-than shows the age of the newest secret, which other lists have only in CSV', async () => {
    const asked = (await run('keys', 'list', '--older-than', '90d')).split('\n');
    expect(asked[0]).toMatch(/^KEY +NEWEST SECRET +PLAN +/);
    expect(asked.find((line) => line.startsWith('acme'))).toMatch(/^acme +unknown +enterprise +/);
    expect(await run('keys', 'list')).not.toContain('NEWEST SECRET');
    expect((await run('keys', 'list', '--csv')).split('\n')[0]).toMatch(/,newest_secret$/);
  });

  it('of keys list follows pages up to the requested number, and states that there are more keys', async () => {
    expect((await run('keys', 'list', '--limit', '3')).split('\n')).toEqual([
      expect.stringMatching(/^KEY/),
      expect.stringMatching(/^acme/),
      expect.anything(),
      expect.anything(),
      'There are more keys: --limit N shows N keys, and --all shows all keys.',
      '',
    ]);
    for (const all of [['--all'], ['--limit', '0']]) {
      const given = JSON.parse(await run('keys', 'list', '--json', ...all));
      expect(given.keys.map(({ id }: { id: string }) => id).sort()).toEqual(keys.map(({ id }) => id).sort());
      expect(given.next).toBeUndefined();
    }
    expect(await run('keys', 'list', '--state', 'banned')).toBe('No key is banned now.\n');
  });

  it('of why is the sentence of the API, on one line', async () => {
    const before = (await ask('/keys/acme')).why.sentence;
    const printed = await run('why', 'acme');
    const { why } = await ask('/keys/acme');
    expect([before, why.sentence].map((sentence) => `${sentence}\n`)).toContain(printed);
    expect(why.sentence).toMatch(
      /^acme \(enterprise\) has used all 5 requests of this day and may call again/,
    );
  });

  it.each([
    [['why', '--at', '14:03'], 'Which key? Give the id of a key before --at.'],
    [['why', 'acme', '--at', '14'], '--at must be a time such as 14:03 (the last 14:03, in UTC),'],
    [['why', 'acme', '--at', '14:03', '--log', 'x.log'], '--at explains a minute of a key'],
    [['why', 'acm', '--at', '0:00'], 'There is no key acm; did you mean `acme`?'],
    [
      ['why', 'acme', '--at', '2020-01-01 14:03'],
      'The minute 14:03:00 UTC on 2020-01-01 is no longer recorded. Minutes are kept for',
    ],
  ])('of %j is a message that says what is wrong', async (args, message) => {
    const { exitCode, stdout, stderr } = await runTollgate(args, env);
    expect([exitCode, stdout, stderr]).toEqual([1, '', expect.stringContaining(message)]);
  });

  it('of keys show has windows, secrets by digest, operations and refusals', async () => {
    // The gateway reports a refusal to Redis shortly after the response.
    await expect
      .poll(() => run('keys', 'show', 'acme'))
      .toMatch(/^strikes +4 refusals that count towards the next ban$/m);
    const stdout = await run('keys', 'show', 'acme');
    expect(stdout).toMatch(/^this day +5 of 5 used, starts over at /m);
    expect(stdout).toMatch(
      new RegExp(
        `^secret +${acme.entry.secrets[0]?.sha256.slice(0, 8)}… .*, last used (now|\\d+ s ago), never expires$`,
        'm',
      ),
    );
    expect(stdout).toMatch(/^listPets +9 +4 +0$/m);
    expect(stdout).toMatch(/ +day 4$/m);
  });

  it('of keys show has the concurrency limit of the key, or else of its plan', async () => {
    expect(await run('keys', 'show', 'few')).toMatch(/^concurrent +3$/m);
    expect(await run('keys', 'show', 'fewest')).toMatch(/^concurrent +2$/m);
    expect(await run('keys', 'show', 'once')).not.toMatch(/^concurrent/m);
  });

  it('of keys show uses the singular for one refusal', async () => {
    await send(once.secret, 2, '/nowhere');
    // The gateway reports a refusal to Redis shortly after the response.
    await expect
      .poll(() => run('keys', 'show', 'once'))
      .toMatch(/^strikes +1 refusal that counts towards the next ban$/m);
  });

  it('of usage adds up offered, admitted and refused requests', async () => {
    expect((await run('usage', 'acme')).trimEnd().split('\n').at(-1)).toMatch(/^total +9 +5 +4 +0 +day 4$/);
    expect(await run('usage', 'customer-0')).toBe('No request of customer-0 is recorded in this period.\n');
  });

  it('of usage --csv has the same columns for every key, and adds up', async () => {
    const titles =
      'at,offered,admitted,refused_second,refused_minute,refused_hour,refused_day,refused_month,banned,undecided,unauthorized,units,refused_concurrent';
    const [first, ...rows] = (await run('usage', 'acme', '--csv', '--from', '-2h')).trimEnd().split('\n');
    expect(first).toBe(titles);
    const sums = titles
      .split(',')
      .map((_, column) => rows.reduce((sum, row) => sum + Number(row.split(',')[column]), 0));
    expect(sums.slice(1)).toEqual([9, 5, 0, 0, 0, 4, 0, 0, 0, 0, 5, 0]);
    expect(await run('usage', 'customer-0', '--csv')).toBe(`${titles}\n`);
  });

  it('of usage without a key has the requests of all clients by hour, also against an earlier period', async () => {
    const [titles, ...rows] = (await run('usage', '--csv')).trim().split('\n');
    expect(titles).toBe('at,requests,served,refused,banned,rejected,failed_by_gateway,failed_by_upstream');
    const sum = (column: number) => rows.reduce((all, row) => all + Number(row.split(',')[column]), 0);
    expect(sum(1)).toBeGreaterThanOrEqual(11);
    expect(sum(3)).toBeGreaterThanOrEqual(4);
    expect(sum(1)).toBe([2, 3, 4, 5, 6, 7].reduce((all, column) => all + sum(column), 0));
    const lines = (await run('usage', '--compare', '-7d')).split('\n');
    expect(lines[0]).toMatch(/^DAY \(UTC\) +REQUESTS +BEFORE +CHANGE +SERVED +REFUSED +NO KEY +FAILED$/);
    expect(lines).toContainEqual(expect.stringMatching(/^total +\d+ +\d+ /));
    expect(await run('usage', '--compare', '-5h')).toMatch(/^HOUR \(UTC\) +REQUESTS +BEFORE /);
    const byDay = (await run('usage', '--step', 'day', '--from', '-14d', '--compare', '-1d')).split('\n');
    expect(byDay[0]).toMatch(/^DAY \(UTC\) +REQUESTS +BEFORE /);
    expect(byDay[1]).toMatch(/^\d{4}-\d\d-\d\d +\d+ /);
  });

  it('of callers --csv is a mailing list: every caller, with name, plan and last call, and no formula', async () => {
    const [titles, ...rows] = (await run('callers', 'listPets', '--csv')).trimEnd().split('\n');
    expect(titles).toBe('id,name,plan,requests,last_call');
    expect(rows).toHaveLength(1);
    expect(rows[0]).toMatch(/^acme,The company .* of acme 猫,enterprise,9,\d{4}-\d\d-\d\dT[\d:.]+Z$/);
    const callers = [{ ...none.caller, id: 'a', name: '=1+"1",2' }];
    expect(listCsv(callerList, { ...none, callers, days: [] }, sayAt(0))[1]).toBe(
      `a,"'=1+""1"",2",,1,1970-01-01T00:00:00.000Z`,
    );
  });

  it('of callers shows who called an operation, and in which period', async () => {
    const stdout = await run('callers', 'getPet', '--from', 'today');
    const today = new Date().toISOString().slice(0, 10);
    expect(stdout).toMatch(
      new RegExp(
        `^getPet, whole hours, from ${today} 00:00 to ${today} .* UTC\nKEY.*\nlong-x+.*business +2 +100 % +2 +0 `,
      ),
    );
    expect(await run('callers', 'getPet', '--from', '2026-01-01', '--to', '2026-01-02')).toMatch(
      /^getPet, whole hours, from 2026-01-01 00:00.* UTC\nNo key called this operation in this period\.\nThe usage record begins at \d{4}-\d\d-\d\d 00:00 UTC: earlier requests are not counted\.\nRequests without a valid secret are in no row: tollgate keys list --dead\n$/,
    );
  });

  it('of operations shows the percentiles of their times, and each percentile is a column of --csv', async () => {
    const stdout = await run('operations', '--from', 'today');
    expect(stdout).toMatch(
      /^Operations, whole hours, from .* 00:00 to .* UTC\nOPERATION +CALLS +429 .*OWN P50\/95\/99 MS/,
    );
    expect(stdout).toMatch(/\ngetPet +2 +0 +2 +0 +[\d.,]+ \/ [\d.,]+ \/ [\d.,]+ /);
    expect(stdout).toMatch(/\ncreatePet +0 +0 +0 +0 +– +–/);
    const { operations } = await ask('/operations');
    const { ownTime } = operations.find(
      ({ operationId }: Record<string, unknown>) => operationId === 'getPet',
    );
    const [titles, ...rows] = (await run('operations', '--csv')).trimEnd().split('\n');
    expect(titles).toBe(
      'operation,method,path,requests,limited,client_errors,server_errors,own_p50_ms,own_p95_ms,own_p99_ms,upstream_p50_ms,upstream_p95_ms,upstream_p99_ms,last_call',
    );
    const { p50Ms, p95Ms, p99Ms } = ownTime;
    expect(rows).toContainEqual(
      expect.stringContaining(`getPet,GET,/pets/{petId},2,0,2,0,${p50Ms},${p95Ms},${p99Ms},`),
    );
  });

  it.each([
    [['keys', 'show', 'nobody'], /^There is no key nobody: /],
    [['why', 'nobody'], /^There is no key nobody: /],
    [['why', '44821b58'], /^There is no key 44821b58: .* of the id of a request, set --log FILE to the log/],
    [['usage', 'a/b?c'], /^There is no key a\/b\?c: /],
    [
      ['callers', 'nothing'],
      /^There is no operation nothing; operations are: listPets, createPet, getPet, listOrders\./,
    ],
    [['callers', 'lstPets'], /^There is no operation lstPets; did you mean `listPets`\?\n/],
    [['keys', 'list', '--plan', 'enterprse'], /^There is no plan enterprse; did you mean `enterprise`\?\n/],
    [['keys', 'list', '--plan', 'gold'], /^There is no plan gold; plans are: /],
    [['keys', 'list', '--state', 'happy'], /'happy' is invalid\. Allowed choices are ok, near,/],
    [['usage', 'acme', '--from', '30 February'], /^--from must be a date such as 2026-11-22/],
    [['usage', 'acme', '--from', '2026-02-30'], /^--from must be a date such as 2026-11-22/],
    [['usage', 'acme', '--from', 'now', '--to', '-2h'], /`from` must not be later than `to`/],
    [['keys', 'list', '--limit', 'x'], /It must be a whole number/],
  ])('is a sentence when %j fails', async (args, sentence) => {
    const { exitCode, stdout, stderr } = await runTollgate(args, env);
    expect({ exitCode, stdout }).toEqual({ exitCode: 1, stdout: '' });
    expect(stderr).toMatch(sentence);
    expect(stderr).not.toContain('    at ');
    expect(stderr).not.toContain(token.token);
  });
});

describe('two gateways on one Redis', () => {
  it('are both listed by processes, which marks the different configuration, and changes shows the failed load', async () => {
    const prefix = freshPrefix();
    const start = (perMinute: number) =>
      startGatewayHere(
        testConfig({
          upstream: { url: backend.url },
          plans: { free: { perMinute } },
          admin: { host: '127.0.0.1', port: 0, tokens: [token.entry] },
          redis: { url: redisUrl(), prefix },
        }),
        { tuning: { bounds: { ...patientStore, presenceExpiryMs: 60_000 } } },
      );
    const pair = await Promise.all([start(60), start(61)]);
    try {
      const [one, other] = pair;
      const versionOf = async ({ adminUrl }: RunningGateway): Promise<string> => {
        const ready = (await (await fetch(`${adminUrl}/readyz`)).json()) as { config: { version: string } };
        return ready.config.version.slice(0, 8);
      };
      const [own, second] = await Promise.all(pair.map(versionOf));
      const at = { TOLLGATE_ADMIN: one.adminUrl, TOLLGATE_ADMIN_TOKEN: token.token };
      const table = async () => (await runTollgate(['processes'], at)).stdout;
      await expect.poll(table).toMatch(new RegExp(`:${process.pid} .* ${second} other$`, 'm'));
      expect(await table()).toMatch(new RegExp(`:${process.pid} .* ${own}$`, 'm'));
      expect((await runTollgate(['top', '--once'], at)).stdout).toContain(
        '1 of 2 processes has another configuration than ',
      );

      await other.editConfig('plans: 3');
      const changes = async () => (await runTollgate(['changes'], at)).stdout;
      await expect.poll(changes).toMatch(/^20.* An edit was not loaded, .*\n {4}.*gateway\.yaml:1:/m);
    } finally {
      await Promise.all(pair.map((gateway) => gateway.stop('SIGKILL')));
    }
  });
});

it('changes states in place of an empty list that the changes are not known while Redis is away', async () => {
  const sentences = async (url: string, bounds = {}) => {
    const admin = { host: '127.0.0.1', port: 0, tokens: [token.entry] };
    const upstream = { url: backend.url };
    const gateway = await startGatewayHere(
      testConfig({ upstream, admin, redis: { url, prefix: freshPrefix() } }),
      { tuning: { bounds } },
    );
    onTestFinished(async () => void (await gateway.stop('SIGKILL')));
    const at = { TOLLGATE_ADMIN: gateway.adminUrl, TOLLGATE_ADMIN_TOKEN: token.token };
    return async () => await runTollgate(['changes'], at);
  };
  const said = await sentences(redisUrl(), patientStore);
  // The gateway may not yet be connected to Redis.
  await expect.poll(said).toMatchObject({ stdout: `${changeList.empty}\n`, stderr: '' });
  const saidAlone = await sentences('redis://127.0.0.1:1');
  expect(await saidAlone()).toMatchObject({
    stdout: 'Unknown: Redis is away, and this gateway knows of none.\n',
    stderr: expect.stringMatching(
      /^Redis has been away since \d{4}-\d\d-\d\d \d\d:\d\d UTC\. Missing: changes that are not in the memory of this gateway, whose own counts begin at \d{4}-\d\d-\d\d \d\d:\d\d UTC, so figures may be too low\. Reason: .*127\.0\.0\.1:1; check redis\.url\.\n$/,
    ),
  });
});
