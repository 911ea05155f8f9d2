import { afterAll, beforeAll, expect, it } from 'vitest';
import { askAdmin, makeToken } from '../support/admin-client.ts';
import { type Fleet, startFleetHere } from '../support/fleet.ts';
import { makeCustomKey, plans, type RunningGateway } from '../support/gateway-process.ts';
import { type RecordingBackend, startRecordingBackend } from '../support/recording-backend.ts';
import { patientGateway } from '../support/tuning.ts';

const { token, entry } = makeToken();
const key = makeCustomKey(1, 1_000);
const tuning = {
  bounds: {
    ...patientGateway,
    eventsMergedWithinMs: 600_000,
    usageMemoryCheckIntervalMs: 200,
  },
};

let fleet: Fleet<RunningGateway>;
let backend: RecordingBackend;
beforeAll(async () => {
  backend = await startRecordingBackend();
  fleet = await startFleetHere({
    starts: [{ tuning }, { tuning }, { tuning }],
    config: {
      upstream: { url: backend.url, health: '/healthz' },
      keys: [key.entry],
      // The ban is long enough for a second process to detect it.
      bans: { after: 3, for: '8s' },
      admin: { host: '127.0.0.1', port: 0, tokens: [entry] },
    },
  });
});
afterAll(async () => {
  await fleet.stop();
  await backend.close();
});

interface Event {
  readonly kind: string;
  readonly text: string;
  readonly key?: string;
  readonly target?: string;
  readonly at: string;
  readonly beganAt?: string;
  readonly processes: number;
}

async function eventsOf({ adminUrl }: RunningGateway): Promise<readonly Event[]> {
  const { status, body } = await askAdmin(Number(new URL(adminUrl).port), '/api/v1/events', { token });
  expect(status).toBe(200);
  return body.isComplete ? body.events : [];
}

/** Waits until every process lists the event with the given number of observing processes. */
async function isListed(kind: string, processes: number): Promise<Event> {
  for (const gateway of fleet.gateways) {
    const seenBy = async () =>
      (await eventsOf(gateway)).filter((one) => one.kind === kind).map((one) => one.processes);
    await expect.poll(seenBy, { message: kind }).toEqual([processes]);
  }
  const [first] = fleet.gateways;
  const event = first && (await eventsOf(first)).find((one) => one.kind === kind);
  if (event === undefined) throw new Error(`no ${kind}`);
  return event;
}

async function send({ baseUrl }: RunningGateway): Promise<number> {
  const response = await fetch(`${baseUrl}/pets`, { headers: { authorization: `Bearer ${key.secret}` } });
  await response.arrayBuffer();
  return response.status;
}

it('a ban and its end are one event each, with the processes that saw them', async () => {
  const [first, second] = fleet.gateways;
  if (!first || !second) throw new Error('three gateways were started');
  for (let request = 0; request < 10; request++) await send(first);
  await send(second);
  const ban = await isListed('ban', 2);
  expect(ban).toMatchObject({ key: key.entry.id, untilAt: expect.any(String) });
  expect(ban.text).toMatch(/is banned for 8 s, until .* UTC: 3 of its requests were refused within/);
  const end = await isListed('ban_ended', 2);
  expect(end.text).toMatch(/expired\.$/);
});

it('a target that fails its health check, and is healthy again, is one event of all processes', async () => {
  backend.health = 503;
  const down = await isListed('target_unhealthy', 3);
  expect(down).toMatchObject({ upstream: 'default', target: `127.0.0.1:${backend.port}` });
  backend.health = 200;
  const healthy = await isListed('target_healthy', 3);
  expect(healthy.text).toMatch(/is healthy again after .* s\. The failure was: health check answered 503\.$/);
});

it('a Redis that is almost full pauses the usage record, with one event then and one when recording resumes', async () => {
  // The test sets `maxmemory` so that a fifth of it is free. The key `ballast` makes this fifth large enough for Redis's clients and
  // scripts.
  await fleet.inspector.setrange('ballast', 20_000_000, 'x');
  const used = Number(/used_memory:(\d+)/.exec(await fleet.inspector.info('memory'))?.[1]);
  await fleet.inspector.config('SET', 'maxmemory', String(Math.round(used / 0.8)));
  const { text } = await isListed('recording_paused', 3);
  expect(text).toMatch(/^The usage record pauses: Redis has used \d+ % of its maxmemory/);
  await fleet.inspector.config('SET', 'maxmemory', '0');
  await isListed('recording_resumed', 3);
});

it('a reload is an event with its changes to the limits of plans, and a failed reload an event with the reason', async () => {
  await fleet.editConfig({ plans: { ...plans, free: { perMinute: 61, perDay: 1_000 } } });
  const { text } = await isListed('reload', 3);
  expect(text).toMatch(/^Configuration [0-9a-f]{12} is in force: free \d+ → 61 a minute\.$/);
  await fleet.editConfig({ plans: { ...plans, free: { perMinute: -1 } } });
  const failed = await isListed('reload_failed', 3);
  expect(failed.text).toMatch(/^Configuration .+ was not loaded, .+ stays in force: .+perMinute/);
});

it('an outage of Redis is one event of all processes, with its beginning, end and duration', async () => {
  await fleet.redis.kill();
  const [first] = fleet.gateways;
  if (!first) throw new Error('three gateways were started');
  await expect.poll(async () => (await eventsOf(first)).length).toBe(0);
  await fleet.redis.restart();
  const { text, beganAt = '', at } = await isListed('store_back', 3);
  expect(text).toMatch(/^Redis is back\. It was away for .* s \(.+\)\.$/);
  expect(beganAt < at).toBe(true);
  expect((await eventsOf(first)).filter(({ kind }) => kind === 'store_away')).toEqual([]);
});
