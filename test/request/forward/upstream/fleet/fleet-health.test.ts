import { setTimeout as sleep } from 'node:timers/promises';
import { expect, it, onTestFinished } from 'vitest';
import { redisKeys } from '../../../../../gateway/redis/redis-keys.ts';
import {
  createFleetHealth,
  type SharedTarget,
} from '../../../../../gateway/request/forward/upstream/fleet/fleet-health.ts';
import type { Bounds } from '../../../../../gateway/shared/timeouts-and-sizes.ts';
import { connectRedis } from '../../../../support/connect-redis.ts';
import { freshPrefix, redisUrl } from '../../../../support/redis.ts';
import { startRedis } from '../../../../support/start-redis.ts';
import { tunedBounds } from '../../../../support/tuned-bounds.ts';
import { patientStore } from '../../../../support/tuning.ts';
import { until } from '../../../../support/until.ts';

interface Member extends SharedTarget {
  /** The health in each call of the member's listener. */
  readonly told: string[];
  passes(agoMs?: number): void;
  fails(agoMs?: number, health?: 'silent' | 'down'): void;
  /** The entry of the target in Redis, or an empty text. */
  entry(): Promise<string>;
}

interface Options {
  readonly url?: string;
  readonly prefix?: string;
  readonly bounds?: Partial<Omit<Bounds, 'windowsMs'>>;
  /** The number of processes that already check the target. */
  readonly before?: number;
}

/** Processes that check one target. Each process has counted the others when the promise resolves. */
async function startMembers(
  count: number,
  { url = redisUrl(), prefix = freshPrefix(), bounds: overrides, before = 0 }: Options = {},
): Promise<readonly Member[]> {
  const bounds = tunedBounds({
    ...patientStore,
    healthPauseMs: 20,
    healthTimeoutMs: 100,
    healthCheckersPeriodMs: 600_000,
    ...overrides,
  });
  const records = await connectRedis({ prefix, place: { url }, bounds });
  onTestFinished(() => records.close());
  const fleets = Array.from({ length: count }, (_, index) =>
    createFleetHealth({ records, processId: `process-${before + index}`, bounds }),
  );
  const members = fleets.map((fleet): Member => {
    onTestFinished(fleet.close);
    const told: string[] = [];
    const target = fleet.join('target', (opinion) => told.push(opinion?.health ?? 'healthy'));
    const report = (health: 'healthy' | 'silent' | 'down', agoMs: number) =>
      target.report({ health, reason: `it is ${health}`, atMs: performance.now() - agoMs });
    return {
      ...target,
      told,
      passes: (agoMs = 0) => report('healthy', agoMs),
      fails: (agoMs = 150, health = 'down') => report(health, agoMs),
      entry: async () => (await records.commands.hget(redisKeys.healthFailing.name(prefix), 'target')) ?? '',
    };
  });
  await until('the last member has counted all members', () =>
    members.some(({ checkers }) => checkers() === before + count),
  );
  // A process counts again when it begins to check a further target.
  for (const fleet of fleets) fleet.join('another target', () => {});
  await until('every member has counted all members', () =>
    members.every(({ checkers }) => checkers() === before + count),
  );
  return members;
}

const kinds = (members: readonly Member[]) => members.map(({ opinion }) => opinion()?.kind);

it('a failure that one process reports repeatedly is only a suspicion, which the next passed check of any process ends', async () => {
  const members = await startMembers(4);
  const [one, two] = members;
  for (let times = 0; times < 5; times++) one?.fails();
  await expect.poll(() => kinds(members)).toEqual(Array(4).fill('suspected'));
  two?.passes();
  await expect.poll(() => kinds(members)).toEqual(Array(4).fill(undefined));
  expect(members.flatMap(({ told }) => told)).toEqual([]);
});

it('a failure that three of five processes report is a failure for all five, with its reason', async () => {
  const members = await startMembers(5);
  for (const member of members.slice(0, 2)) member.fails();
  await expect.poll(() => kinds(members)).toEqual(Array(5).fill('suspected'));
  members[2]?.fails();
  await expect.poll(() => kinds(members)).toEqual(Array(5).fill('failing'));
  expect(members.map(({ told }) => told)).toEqual(Array(5).fill(['down']));
  expect(members[4]?.opinion()).toMatchObject({ reason: 'several gateway processes report: it is down' });
});

it('a target counts as silent if one process finds it silent, because it may still answer', async () => {
  const members = await startMembers(4);
  members[0]?.fails(150, 'down');
  members[1]?.fails(150, 'silent');
  await expect.poll(() => members[3]?.opinion()).toMatchObject({ kind: 'failing', health: 'silent' });
});

it('the fleet confirms a failure only after the timeout of a check, so that passed checks of that time can arrive', async () => {
  const members = await startMembers(4, { bounds: { healthTimeoutMs: 600_000 } });
  for (const member of members) member.fails(500_000);
  await expect.poll(() => kinds(members)).toEqual(Array(4).fill('suspected'));
  members[0]?.fails(700_000);
  await expect.poll(() => kinds(members)).toEqual(Array(4).fill('failing'));
});

it('a passed check that ended before the failed checks began does not end the suspicion', async () => {
  const members = await startMembers(4);
  const [one, two, three, four] = members;
  one?.fails(1_000);
  await expect.poll(() => kinds(members)).toEqual(Array(4).fill('suspected'));
  two?.passes(2_000);
  three?.fails(900);
  await expect.poll(() => four?.opinion()?.kind).toBe('failing');
});

it('a failing target is healthy again when as many processes report passed checks, and not when one does so repeatedly', async () => {
  const members = await startMembers(5);
  for (const member of members) member.fails();
  await expect.poll(() => kinds(members)).toEqual(Array(5).fill('failing'));
  const [one, two, three] = members;
  const bothPassed = /"passed":\["process-[01]","process-[01]"\]/;
  if (one === undefined) throw new Error('five were started');
  for (let times = 0; times < 5; times++) one?.passes();
  two?.passes();
  // This failure began after the passed checks, so both no longer count.
  await expect.poll(one.entry).toMatch(bothPassed);
  three?.fails(0);
  await expect.poll(one.entry).not.toContain('passed');
  one?.passes();
  two?.passes();
  await expect.poll(one.entry).toMatch(bothPassed);
  expect(kinds(members)).toEqual(Array(5).fill('failing'));
  three?.passes();
  await expect.poll(() => kinds(members)).toEqual(Array(5).fill(undefined));
  expect(members.map(({ told }) => told)).toEqual(Array(5).fill(['down', 'healthy']));
});

it('a process that starts to check a failing target learns of the failure', async () => {
  const prefix = freshPrefix();
  const members = await startMembers(4, { prefix });
  for (const member of members) member.fails();
  await expect.poll(() => kinds(members)).toEqual(Array(4).fill('failing'));
  const [late] = await startMembers(1, { prefix, before: 4 });
  await expect.poll(() => late?.told).toEqual(['down']);
});

it('Redis stores no more failing targets than the bound', async () => {
  const members = await startMembers(4, { bounds: { healthFailingMax: 0 } });
  for (const member of members) member.fails();
  for (let times = 0; times < 20; times++) {
    expect(await members[0]?.entry()).toBe('');
    await sleep(20);
  }
  expect(kinds(members)).toEqual(Array(4).fill(undefined));
});

it('a failing target that Redis forgets has not recovered, so each process relies on its own checks', async () => {
  const members = await startMembers(4, { bounds: { healthFailingKeptMs: 500 } });
  for (const member of members) member.fails();
  await expect.poll(() => kinds(members)).toEqual(Array(4).fill('failing'));
  await expect.poll(() => kinds(members)).toEqual(Array(4).fill(undefined));
  expect(members.map(({ told }) => told)).toEqual(Array(4).fill(['down']));
});

it('a failed check that began before the target recovered does not bring the failure back', async () => {
  const members = await startMembers(4, { bounds: { healthTimeoutMs: 10_000 } });
  for (const member of members) member.fails(20_000);
  await expect.poll(() => kinds(members)).toEqual(Array(4).fill('failing'));
  for (const member of members) member.passes();
  await expect.poll(() => kinds(members)).toEqual(Array(4).fill(undefined));
  for (const member of members) member.fails(60_000);
  // A new failure is only a suspicion at first. With the earlier failures, it would be confirmed at once.
  for (const member of members) member.fails(0);
  for (const member of members) member.fails(60_000);
  await expect.poll(() => kinds(members)).toEqual(Array(4).fill('suspected'));
  expect(members.map(({ told }) => told)).toEqual(Array(4).fill(['down', 'healthy']));
});

it('without Redis a process checks alone, has no opinion of the fleet, and shares again when Redis is back', async () => {
  const server = await startRedis();
  onTestFinished(() => server.stop());
  const members = await startMembers(4, { url: server.url });
  for (const member of members) member.fails();
  await expect.poll(() => kinds(members)).toEqual(Array(4).fill('failing'));
  await server.kill();
  await expect.poll(() => kinds(members)).toEqual(Array(4).fill(undefined));
  expect(Math.max(...members.map(({ checkers }) => checkers()))).toBeLessThanOrEqual(2);
  expect(members.map(({ told }) => told)).toEqual(Array(4).fill(['down']));
});

it('while Redis hangs, a process soon checks alone, because its turn may come too late for a target that hangs too', async () => {
  const server = await startRedis();
  onTestFinished(() => server.stop());
  const bounds = {
    storePatientDeadlineMs: 600_000,
    storeSilenceMaxMs: 600_000,
    healthExchangeDeadlineMs: 500,
  };
  const members = await startMembers(4, { url: server.url, bounds });
  const counted = () => members.map(({ checkers }) => checkers());
  server.freeze();
  await expect.poll(counted).toEqual(Array(4).fill(2));
  server.thaw();
  await expect.poll(counted).toEqual(Array(4).fill(4));
});
