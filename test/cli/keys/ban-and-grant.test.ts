import { afterAll, beforeAll, expect, test } from 'vitest';
import { makeToken } from '../../support/admin-client.ts';
import { freshWindows } from '../../support/fresh-windows.ts';
import { startGatewayHere } from '../../support/gateway-here.ts';
import { makeCustomKey, makeKey, type RunningGateway, testConfig } from '../../support/gateway-process.ts';
import { okResponse, type RecordingBackend, startRecordingBackend } from '../../support/recording-backend.ts';
import { freshPrefix, redisUrl } from '../../support/redis.ts';
import { runTollgate } from '../../support/run-tollgate.ts';
import { patientStore } from '../../support/tuning.ts';

const writer = makeToken('write', 'ada');
const reader = makeToken('read', 'bob');
const banned = makeCustomKey(1, 1_000);
const spent = makeCustomKey(1_000, 2);
const customer = makeKey({ id: 'customer-7' });
const reporter = makeKey({
  id: 'reporter',
  groups: { reports: { operations: ['listPets'], perDay: 1 } },
});

let backend: RecordingBackend;
let gateways: RunningGateway[];
beforeAll(async () => {
  backend = await startRecordingBackend({ react: (_, socket) => socket.write(okResponse('{}')) });
  const config = testConfig({
    upstream: { url: backend.url },
    redis: { url: redisUrl(), prefix: freshPrefix() },
    keys: [banned.entry, spent.entry, customer.entry, reporter.entry],
    admin: { host: '127.0.0.1', port: 0, tokens: [writer.entry, reader.entry] },
    bans: { after: 3, for: '10m' },
  });
  const tuning = { windowsMs: freshWindows(Date.now()), bounds: patientStore };
  gateways = await Promise.all([startGatewayHere(config, { tuning }), startGatewayHere(config, { tuning })]);
});
afterAll(async () => {
  await Promise.all(gateways.map((gateway) => gateway.stop('SIGKILL')));
  await backend.close();
});

/** Runs a command against the first gateway. */
function run(command: string, token = writer.token) {
  const env = { TOLLGATE_ADMIN: gateways[0]?.adminUrl ?? '', TOLLGATE_ADMIN_TOKEN: token };
  return runTollgate(['keys', ...command.split(' ')], env);
}

/** Sends a request to the second gateway. */
async function call(secret: string) {
  const response = await fetch(`${gateways[1]?.baseUrl}/pets`, {
    headers: { authorization: `Bearer ${secret}` },
  });
  await response.arrayBuffer();
  return response;
}

test('unban admits a banned key on another process, and shows the limits that remain', async () => {
  for (let request = 0; request < 5; request++) await call(banned.secret);
  expect((await call(banned.secret)).headers.get('ratelimit')).toContain('"ban"');
  const { id } = banned.entry;
  const { exitCode, stdout, stderr } = await run(`unban ${id}`);
  expect({ exitCode, stderr }).toEqual({ exitCode: 0, stderr: '' });
  expect(stdout).toMatch(
    new RegExp(`^${id} is no longer banned\\.\n${id} \\(enterprise\\) has used .* of this minute`),
  );
  await expect.poll(async () => (await call(banned.secret)).headers.get('ratelimit')).not.toContain('"ban"');
  expect((await run(`unban ${id}`)).stdout).toMatch(new RegExp(`^${id} was not banned\\.\n`));
});

test('grant raises a key’s limits for a while on every process, ungrant ends it, and --json shows the result', async () => {
  const { id } = spent.entry;
  for (let request = 0; request < 3; request++) await call(spent.secret);
  const granted = await run(`grant ${id} --per-day 5000 --until +6h`);
  expect(granted).toMatchObject({ exitCode: 0, stderr: '' });
  expect(granted.stdout).toMatch(
    new RegExp(
      `^${id} has a grant: 5,000 a day until .* UTC, in 6 hours\\.\n${id} .* 5,000 a day in place of 2`,
    ),
  );
  await expect.poll(async () => (await call(spent.secret)).status).toBe(200);
  const until = new Date(Date.now() + 86_400_000).toISOString();
  const replaced = JSON.parse(
    (await run(`grant ${id} --per-day 7 --per-minute 9 --until ${until} --json`)).stdout,
  );
  expect(replaced).toMatchObject({
    id,
    grant: { limits: { perMinute: 9, perDay: 7 }, untilMs: Date.parse(until) },
  });
  const ended = await run(`ungrant ${id}`);
  expect(ended).toMatchObject({ exitCode: 0, stdout: expect.stringMatching(`^${id} has no grant\\.\n`) });
  await expect.poll(async () => (await call(spent.secret)).status).toBe(429);
});

test('grant --group raises a limit of a group on every process, and leaves the limits of the plan', async () => {
  expect([(await call(reporter.secret)).status, (await call(reporter.secret)).status]).toEqual([200, 429]);
  const granted = await run('grant reporter --group reports --per-day 50 --until +6h');
  expect(granted).toMatchObject({ exitCode: 0, stderr: '' });
  expect(granted.stdout).toMatch(
    /^reporter has a grant: 50 a day for the group reports until .* UTC, in 6 hours\.\n/,
  );
  expect(granted.stdout).toMatch(
    / UTC(?: on [\d-]+)?: 50 a day for the group reports in place of 1\. It may call: /,
  );
  await expect.poll(async () => (await call(reporter.secret)).status).toBe(200);
  const shown = await run('show reporter');
  expect(shown.stdout).toMatch(/^this day for the group reports +\d of 50 used, starts over at .* UTC$/m);
  expect(shown.stdout).toMatch(
    /^grant +50 a day for the group reports until .* UTC, in 5 hours 59 minutes$|^grant +50 a day for the group reports until .* in 6 hours$/m,
  );
  expect((await run('list')).stdout).toMatch(/^reporter +free +\w+ +(minute|reports-day) \d+\/\d+ /m);
  await run('ungrant reporter');
  await expect.poll(async () => (await call(reporter.secret)).status).toBe(429);
});

test.each(['grant --per-day 5000', 'ban --reason audit'])(
  'keys %s until the end of a day shows one end in its sentences and in keys show',
  async (change) => {
    const { id } = spent.entry;
    const [verb, ...options] = change.split(' ');
    const day = new Date(Date.now() + 2 * 86_400_000).toISOString().slice(0, 10);
    const changed = await run(`${verb} ${id} ${options.join(' ')} --until ${day}`);
    const shown = await run(`show ${id}`);
    const ends = `${changed.stdout}${shown.stdout}`.match(/until [^,:]*(?::\d\d)* UTC(?: on [\d-]+)?/g);
    expect(ends).toHaveLength(4);
    expect(new Set(ends)).toEqual(new Set([`until ${day} 24:00 UTC`]));
    await run(`un${verb} ${id}`);
  },
);

test('a grant that begins later is announced with its beginning, its end and its duration', async () => {
  const { id } = customer.entry;
  const dayAt = (ahead: number) => new Date(Date.now() + ahead * 86_400_000).toISOString().slice(0, 10);
  const day = dayAt(2);
  const { exitCode, stdout, stderr } = await run(`grant ${id} --per-day 5000 --from ${day} --until ${day}`);
  expect({ exitCode, stderr }).toEqual({ exitCode: 0, stderr: '' });
  const period = `from ${day} 00:00 UTC, in [^,]+, until ${day} 24:00 UTC, for 1 day`;
  expect(stdout).toMatch(
    new RegExp(
      `^${id} will have a grant: 5,000 a day ${period}\\.\n${id} \\(free\\) will have a grant from ${day} 00:00 UTC until ${day} 24:00 UTC: `,
    ),
  );
  expect((await run(`show ${id}`)).stdout).toMatch(new RegExp(`^grant +5,000 a day ${period}$`, 'm'));
  const other = await run(`grant ${id} --per-day 5000 --until tomorrow`);
  expect([other.exitCode, other.stderr]).toEqual([
    1,
    expect.stringContaining('end the present grant first.'),
  ]);
  expect((await run(`ungrant ${id}`)).stdout).toMatch(`${id} has no grant.`);
});

test.each([
  [
    'unban custmer-7',
    'There is no key custmer-7: "keys list --q TEXT" finds keys by a part of their id or name.',
  ],
  ['grant customer-8 --per-day 5 --until +1h', 'There is no key customer-8: "keys list --q TEXT" finds keys'],
  [
    'ungrant nobody-at-all',
    'There is no key nobody-at-all: "keys list --q TEXT" finds keys by a part of their id or name.',
  ],
  ['unban \u001b[2J', 'There is no key \\u{1b}[2J: "keys list'],
  ['grant customer-7 --until +1h', 'Which limits? Give at least one of --per-second, --per-minute, '],
  ['grant customer-7 --per-day 5 --until soon', '--until must be a date such as 2026-12-01'],
  ['grant customer-7 --per-day 5 --until 2020-01-01', '--until 2020-01-01 is in the past.'],
  ['grant customer-7 --per-day 5 --until +1h --from later', '--from must be a date such as 2026-12-01'],
  ['grant customer-7 --per-day 5 --until 2100-01-01', '`untilAt` must be at most 400 days ahead.'],
  ['grant customer-7 --per-hour 5 --until +1h', 'The limits of customer-7 are perMinute, perDay.'],
  [
    'grant customer-7 --group reports --per-day 5 --until +1h',
    '`limits.groups.reports` names a group that customer-7 (free) does not have. customer-7 has no groups.',
  ],
  [
    'grant reporter --group report --per-day 5 --until +1h',
    '`limits.groups.report` names a group that reporter (free) does not have. reporter has the group reports.',
  ],
  [
    'grant reporter --group reports --per-hour 5 --until +1h',
    '`limits.groups.reports.perHour` names a window in which reporter (free) has no limit. The limits of reporter are perMinute, perDay, groups.reports.perDay.',
  ],
  [
    'grant reporter --group reports --until +1h',
    'Which limits of the group reports? Give at least one of --per-second, --per-minute, ',
  ],
  ['grant customer-7 --per-day 0 --until +1h', '`limits.perDay` must be a whole number from 1'],
  ['grant customer-7 --per-day 5', "required option '--until <when>' not specified"],
])('%s prints the problem', async (command, message) => {
  const { exitCode, stdout, stderr } = await run(command);
  expect({ exitCode, stdout }).toEqual({ exitCode: 1, stdout: '' });
  expect(stderr).toContain(message);
});

test('a read token changes nothing, and the message names the necessary token', async () => {
  const { exitCode, stderr } = await run(`unban ${customer.entry.id}`, reader.token);
  expect(exitCode).toBe(1);
  expect(stderr).toMatch(
    /The token may only read\. "tollgate admin token --name NAME --may write" makes a token that may change keys/,
  );
});
