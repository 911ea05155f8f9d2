import { randomUUID } from 'node:crypto';
import { Agent, request } from 'undici';
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest';
import { issueSecret } from '../../gateway/shared/secrets.ts';
import { defaultBounds } from '../../gateway/shared/timeouts-and-sizes.ts';
import { type DirectoryOfTest, directoryOf, secretOf } from '../support/directory-of.ts';
import { type Fleet, startFleetHere } from '../support/fleet.ts';
import { freshWindows } from '../support/fresh-windows.ts';
import { makeKey, type RunningGateway } from '../support/gateway-process.ts';
import { inventedSecret } from '../support/invented-secret.ts';
import { startLoad } from '../support/load.ts';
import { monitorRedis } from '../support/monitor-redis.ts';
import { patientStore } from '../support/tuning.ts';
import { until } from '../support/until.ts';

/** Row 34 of the list of faults: secrets that a client invents with the prefix `tg_`, so that their checksum is wrong. */

const addressPerMinute = 20_000;
const ownForm = makeKey({ id: 'own-form', plan: 'pro' }, inventedSecret());
const agent = new Agent();
let fleet: Fleet<RunningGateway>;
let directory: DirectoryOfTest;

async function start(bounds: Record<string, number> = {}): Promise<void> {
  const tuned = { ...patientStore, directoryAbsentMs: 60_000, ...bounds };
  const tuning = { bounds: tuned, windowsMs: freshWindows(Date.now()) };
  fleet = await startFleetHere({
    starts: [{ tuning }, { tuning }],
    config: {
      keys: { file: './keys.yaml', directory: true },
      addressBucket: { perMinute: addressPerMinute },
    },
    files: { 'keys.yaml': [ownForm.entry] },
  });
  directory = await directoryOf({ url: fleet.redis.url, prefix: fleet.prefix });
}

async function stop(): Promise<void> {
  directory.close();
  await fleet.stop();
}

afterAll(() => agent.close());

async function send(process: number, secret: string) {
  const headers = { authorization: `Bearer ${secret}` };
  const reply = await request(`${fleet.origins[process]}/v1/pets`, { dispatcher: agent, headers });
  return { status: reply.statusCode, headers: reply.headers, body: await reply.body.text() };
}

async function statusesOf(secret: string): Promise<number[]> {
  return Promise.all(fleet.origins.map(async (_, process) => (await send(process, secret)).status));
}

/** Lists the names of the strings that the gateways read from Redis. */
async function watchReads() {
  const names: string[] = [];
  const monitor = await monitorRedis(fleet.redis.port, ([command = '', name = '']) => {
    if (/^get$/i.test(command)) names.push(name);
  });
  onTestFinished(() => monitor.stop());
  const now = async () => {
    const last = `last-${randomUUID()}`;
    await fleet.inspector.get(last);
    await until('the monitor has listed all reads', () => names.includes(last));
    return names.filter((name) => !name.startsWith('last-'));
  };
  return {
    stop: monitor.stop,
    async lookUps() {
      return (await now()).filter((name) => name.startsWith(`${fleet.prefix}:digest:`)).length;
    },
    /** The number of all other reads. Each process reads keys of the fleet once a second, with or without requests. */
    async others() {
      const leftOut = [`${fleet.prefix}:digest:`, `${fleet.prefix}:fleet:`];
      return (await now()).filter((name) => !leftOut.some((start) => name.startsWith(start))).length;
    },
  };
}

async function untilRefusedByChecksum(process: number): Promise<void> {
  const { lookUps, stop } = await watchReads();
  await until('the process refuses invented secrets without a look-up', async () => {
    const before = await lookUps();
    const { status } = await send(process, inventedSecret());
    return status === 401 && (await lookUps()) === before;
  });
  stop();
}

describe('a flood of invented secrets with wrong checksums', () => {
  // The process relies on a mark for a minute, so that a busy machine causes no look-up.
  beforeAll(() => start({ directoryMarkLeaseMs: 60_000 }));
  afterAll(stop);

  it('reaches neither the directory nor Redis', async () => {
    await directory.issue('issued', [issueSecret()]);
    await untilRefusedByChecksum(0);
    const reads = await watchReads();
    const beganMs = performance.now();
    const requestsMax = 3_000;
    const { responses, failures } = await startLoad({
      origins: fleet.origins.slice(0, 1),
      secrets: Array.from({ length: requestsMax }, () => inventedSecret()),
      clients: 30,
      requestsMax,
    }).done;
    const readsOfMark = Math.ceil((performance.now() - beganMs) / defaultBounds.directoryMarkReadMs) + 1;
    expect(failures).toEqual([]);
    expect(responses.map(({ status }) => status)).toEqual(Array(responses.length).fill(401));
    expect(await reads.lookUps()).toBe(0);
    expect(await reads.others()).toBeLessThanOrEqual(4 * readsOfMark);
  });

  it('gets the same response, charge and access line as other unknown secrets, which are looked up once', async () => {
    await untilRefusedByChecksum(0);
    const secrets = [
      inventedSecret(),
      issueSecret(),
      inventedSecret(),
      'sk_other',
      issueSecret().replace('tg_', 'TG_'),
    ];
    const { lookUps } = await watchReads();
    const replies = [];
    for (const secret of secrets) {
      const before = await lookUps();
      const { status, headers, body } = await send(0, secret);
      await send(0, secret);
      const { date: _, 'x-request-id': requestId, ...fields } = headers;
      const remaining = Number(fields['x-ratelimit-remaining']);
      const names = Object.keys(headers);
      const line = await fleet.gateways[0]?.line((one) => one.requestId === requestId);
      const { keyStatus, status: logged, code, limitedBy } = line ?? {};
      const looked = (await lookUps()) - before;
      replies.push({ status, names, body, remaining, looked, line: { keyStatus, logged, code, limitedBy } });
    }
    const [first] = replies;
    expect(first).toMatchObject({ status: 401, line: { keyStatus: 'unknown', logged: 401 } });
    for (const [index, { looked, remaining, ...reply }] of replies.entries()) {
      expect(reply).toEqual({
        status: 401,
        names: first?.names,
        body: first?.body,
        line: first?.line,
      });
      expect(remaining).toBe((first?.remaining ?? 0) - 2 * index);
      expect(looked).toBe([0, 1, 0, 1, 1][index]);
    }
  });

  it('does not refuse a secret of the keys file, whatever its checksum', async () => {
    await untilRefusedByChecksum(0);
    expect(await statusesOf(ownForm.secret)).toEqual([200, 200]);
  });
});

describe('an invented secret with a wrong checksum', () => {
  beforeAll(() => start());
  afterAll(stop);

  it('gets 503 while Redis is away, like every other unknown secret, and 401 afterwards', async () => {
    await untilRefusedByChecksum(1);
    await fleet.redis.kill();
    await until('an invented secret gets 503', async () => (await send(1, inventedSecret())).status === 503);
    await fleet.redis.restart();
    await until('an invented secret gets 401', async () => (await send(1, inventedSecret())).status === 401);
    await untilRefusedByChecksum(1);
  });

  it('is looked up from the moment of an import, and all processes accept the imported secret immediately', async () => {
    const flood = startLoad({
      origins: fleet.origins,
      secrets: Array.from({ length: 1_000 }, () => inventedSecret()),
      clients: 8,
      pauseMs: 20,
    });
    await Promise.all([untilRefusedByChecksum(0), untilRefusedByChecksum(1)]);
    for (const id of ['first', 'second']) {
      const secret = inventedSecret();
      const key = { id, plan: 'free', disabled: false, secrets: [secretOf(secret)] };
      expect((await directory.createImported(key)).kind).toBe('written');
      expect(await statusesOf(secret)).toEqual([200, 200]);
    }
    const { lookUps } = await watchReads();
    const before = await lookUps();
    expect((await send(0, inventedSecret())).status).toBe(401);
    expect(await lookUps()).toBeGreaterThan(before);
    const { responses } = await flood.stop();
    expect(new Set(responses.map(({ status }) => status))).toEqual(new Set([401]));
  });
});
