import { afterAll, beforeAll, expect, test } from 'vitest';
import { packGrant, unpackGrant } from '../../../gateway/quota/grants.ts';
import { exemptionMembers, statedExemptions } from '../../../gateway/shared/schema/exemptions.ts';
import { makeToken } from '../../support/admin-client.ts';
import { startGatewayHere } from '../../support/gateway-here.ts';
import { makeKey, type RunningGateway, testConfig } from '../../support/gateway-process.ts';
import { runTollgate } from '../../support/run-tollgate.ts';

const writer = makeToken('write', 'ada');
const grouped = makeKey({
  id: 'reporter',
  groups: { reports: { operations: ['listPets'], perDay: 1 } },
});

let gateway: RunningGateway;
beforeAll(async () => {
  const config = testConfig({
    upstream: { url: 'http://127.0.0.1:1' },
    keys: [grouped.entry],
    admin: { host: '127.0.0.1', port: 0, tokens: [writer.entry] },
  });
  gateway = await startGatewayHere(config);
});
afterAll(() => gateway.stop('SIGKILL'));

function run(command: string) {
  const env = { TOLLGATE_ADMIN: gateway.adminUrl ?? '', TOLLGATE_ADMIN_TOKEN: writer.token };
  return runTollgate(['keys', ...command.split(' ')], env);
}

test('a grant of the exemption has one form in Redis and one in the API', () => {
  const grant = { limits: [], untilMs: 1_795, ...statedExemptions({ noBrownouts: true }) };
  expect(packGrant(grant)).toBe('1795 brownouts 0');
  expect(exemptionMembers(grant)).toEqual({ noBrownouts: true });
});

const day = { window: 'day', max: 50 };
const reportsDay = { window: 'day', group: 'reports', max: 20 };
const exemptions = ['brownouts'];

test.each([
  ['1795 day 50 from 1790 brownouts 0', { limits: [day], fromMs: 1_790, exemptions }],
  ['1795 brownouts 0 leaked 1795', { limits: [], exemptions }],
  ['1795 reports:day 20 leaked 1795', { limits: [reportsDay] }],
])('the stored grant %j has its limits and its exemption', (packed, grant) => {
  expect(unpackGrant(packed)).toEqual({ untilMs: 1_795, ...grant });
});

test('grant --no-brownouts exempts a key, and keys show and keys list say so', async () => {
  const granted = await run('grant reporter --no-brownouts --until +6h');
  expect(granted).toMatchObject({ exitCode: 0, stderr: '' });
  expect(granted.stdout).toMatch(/^reporter has a grant: no brownouts until .* UTC, in 6 hours\./);
  const both = await run('grant reporter --no-brownouts --per-day 7 --until +6h');
  expect(both.stdout).toMatch(/^reporter has a grant: 7 a day, no brownouts until .* UTC, in 6 hours\./);
  expect((await run('show reporter')).stdout).toMatch(/^grant +7 a day, no brownouts until .* UTC, in /m);
});

test.each([
  ['grant reporter --until +1h', ', or --no-brownouts.'],
  ['grant reporter --group reports --no-brownouts --until +1h', 'Which limits of the group reports?'],
  ['grant reporter --until +1h --brownouts', "error: unknown option '--brownouts'\n"],
])('%s prints the problem', async (command, message) => {
  const { exitCode, stdout, stderr } = await run(command);
  expect({ exitCode, stdout }).toEqual({ exitCode: 1, stdout: '' });
  expect(stderr).toContain(message);
});
