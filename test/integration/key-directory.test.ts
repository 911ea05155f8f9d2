import { connect, type Socket } from 'node:net';
import { Agent, request } from 'undici';
import { afterAll, beforeAll, beforeEach, describe, expect, it, onTestFinished } from 'vitest';
import { redisKeys } from '../../gateway/redis/redis-keys.ts';
import { type DirectoryOfTest, directoryOf, secretOf } from '../support/directory-of.ts';
import { type Fleet, readiness, startFleetHere } from '../support/fleet.ts';
import { freshWindows } from '../support/fresh-windows.ts';
import { makeKey, type RunningGateway } from '../support/gateway-process.ts';
import { startLoad } from '../support/load.ts';
import { monitorRedis } from '../support/monitor-redis.ts';
import { patientStore, steadyStore } from '../support/tuning.ts';
import { until } from '../support/until.ts';
import { keyEndings } from './key-endings.ts';

/** Row 34 of the list of faults. Processes do not send each other messages about changed keys. */

let fleet: Fleet<RunningGateway>;
let directory: DirectoryOfTest;
const agent = new Agent();
const configured = makeKey({ id: 'configured', plan: 'pro' });
const addressPerMinute = 500;

async function start(bounds: Record<string, number>, { gateways = 3, relayed = false } = {}): Promise<void> {
  const tuning = { bounds, windowsMs: freshWindows(Date.now()) };
  fleet = await startFleetHere({
    starts: Array(gateways).fill({ tuning }),
    config: {
      keys: { file: './keys.yaml', directory: true },
      addressBucket: { perMinute: addressPerMinute },
    },
    relayed,
    files: { 'keys.yaml': [configured.entry] },
  });
  directory = await directoryOf({ url: fleet.redis.url, prefix: fleet.prefix });
}

async function stop(): Promise<void> {
  directory.close();
  await fleet.stop();
}

async function send(process: number, secret: string, dispatcher = agent) {
  const headers = { authorization: `Bearer ${secret}` };
  const reply = await request(`${fleet.origins[process]}/v1/pets`, { dispatcher, headers });
  await reply.body.dump();
  return reply;
}

/** Sends a request with this secret to each process. @returns the statuses */
function statusesOf(secret: string): Promise<number[]> {
  return Promise.all(fleet.origins.map(async (_, process) => (await send(process, secret)).statusCode));
}

let keys = 0;
let id = '';
let secret = '';
beforeEach(() => {
  keys++;
  id = `issued-${keys}`;
  secret = `secret-${keys}`;
});

describe('keys of the directory', () => {
  beforeAll(() => start(patientStore));
  afterAll(stop);

  it('that one process issues are served at once by all processes, with the limits of their plan', async () => {
    await directory.issue(id, [secret]);
    for (const process of fleet.origins.keys()) {
      const { statusCode, headers } = await send(process, secret);
      expect([statusCode, headers['x-ratelimit-limit']]).toEqual([200, '60']);
    }
  });

  it('are refused on every process with the first request after a revocation, also under load', async () => {
    await directory.issue(id, [secret], { plan: 'business' });
    expect(await statusesOf(secret)).toEqual([200, 200, 200]);
    const load = startLoad({ origins: fleet.origins, secrets: [secret], clients: 12 });
    await until('the load runs', () => load.responses.length > 100);
    await directory.edit(id, { disabled: true });
    const revokedMs = performance.now();
    const sentLater = () => load.responses.filter(({ atMs, tookMs }) => atMs - tookMs > revokedMs);
    await until('the load has gone on, on each', () => {
      const origins = new Set(sentLater().map(({ origin }) => origin));
      return load.responses.length > 200 && origins.size === fleet.origins.length;
    });
    const { failures } = await load.stop();
    expect(failures).toEqual([]);
    expect(sentLater().filter(({ status }) => status === 200)).toEqual([]);
  });

  it.each(keyEndings)('that are %s get 401 from every process with the next request', async (_, change) => {
    await directory.issue(id, [secret]);
    expect(await statusesOf(secret)).toEqual([200, 200, 200]);
    await change(directory, id);
    expect(await statusesOf(secret)).toEqual([401, 401, 401]);
  });

  it('that are restored are served by every process within a second', async () => {
    await directory.issue(id, [secret], { disabled: true });
    expect(await statusesOf(secret)).toEqual([401, 401, 401]);
    await directory.edit(id, { disabled: false });
    await expect.poll(() => statusesOf(secret)).toEqual([200, 200, 200]);
  });

  it('that move to another plan get its limits with the next request', async () => {
    await directory.issue(id, [secret]);
    expect(await statusesOf(secret)).toEqual([200, 200, 200]);
    await directory.edit(id, { plan: 'pro' });
    for (const process of fleet.origins.keys()) {
      expect((await send(process, secret)).headers['x-ratelimit-limit']).toBe('300');
    }
  });

  it('that are rotated have two secrets on one quota', async () => {
    await directory.issue(id, [secret]);
    const first = await send(0, secret);
    await directory.edit(id, { secrets: [secret, `${secret}-next`].map(secretOf) });
    const second = await send(1, `${secret}-next`);
    const third = await send(2, secret);
    const remaining = [first, second, third].map(({ headers }) => Number(headers['x-ratelimit-remaining']));
    expect(remaining).toEqual([59, 58, 57]);
  });

  it('lose against a key of the configuration with the same id, which is logged once', async () => {
    await directory.issue(configured.entry.id, [secret]);
    expect(await statusesOf(secret)).toEqual([401, 401, 401]);
    expect(await statusesOf(secret)).toEqual([401, 401, 401]);
    expect((await send(0, configured.secret)).headers['x-ratelimit-limit']).toBe('300');
    for (const { line, lines } of fleet.gateways) {
      const isWarning = ({ level, keyId }: Record<string, unknown>) => level === 40 && keyId === 'configured';
      await line(isWarning);
      expect(lines.filter(isWarning)).toHaveLength(1);
    }
  });

  it('on a plan that the configuration does not have get 401, and the log has the reason', async () => {
    await directory.issue(id, [secret], { plan: 'gone' });
    expect((await send(0, secret)).statusCode).toBe(401);
    await fleet.gateways[0]?.line((line) => line.keyId === id && line.level === 40);
    const entry = await fleet.gateways[0]?.line((line) => line.keyId === id && line.status === 401);
    expect(entry).toMatchObject({ keyStatus: 'no_plan' });
  });

  it('cost at most one look-up a second for an unknown secret, charged to its address', async () => {
    const stranger = new Agent({ localAddress: '127.0.0.2' });
    onTestFinished(() => stranger.close());
    const statuses: number[] = [];
    const startedMs = performance.now();
    const lookUps = await countLookUps(() => {
      const clients = Array.from({ length: 20 }, async () => {
        for (let time = 0; time < addressPerMinute / 10; time++) {
          statuses.push((await send(0, `nobody-${id}`, stranger)).statusCode);
        }
      });
      return Promise.all(clients);
    });
    const seconds = Math.ceil((performance.now() - startedMs) / 1_000);
    expect(lookUps).toBeLessThanOrEqual(seconds);
    expect(statuses.filter((status) => status === 401)).toHaveLength(addressPerMinute);
    expect(statuses.filter((status) => status === 429)).toHaveLength(addressPerMinute);
  });

  it('that are valid and not cached are served at the address of a flood of unknown secrets', async () => {
    const flood = startLoad({
      origins: fleet.origins,
      secrets: Array.from({ length: 5_000 }, (_, guess) => `guess-${guess}`),
      clients: 60,
    });
    await until('the flood runs', () => flood.responses.length > 300);
    const statuses: number[][] = [];
    for (let key = 0; key < 5; key++) {
      await directory.issue(`${id}-${key}`, [`${secret}-${key}`]);
      statuses.push(await statusesOf(`${secret}-${key}`));
    }
    const { responses, failures } = await flood.stop();
    expect(statuses.flat()).toEqual(Array(15).fill(200));
    expect(failures).toEqual([]);
    expect(responses.filter(({ status }) => status !== 401 && status !== 429)).toEqual([]);
  });
});

/**
 * With these bounds, every key that a process has cached is too old for a request that Redis does not decide, and no refusal is cached. The
 * defaults are a minute and a second.
 */
const alwaysOld = { directoryCachedMs: 0, directoryAbsentMs: 0 };

describe('keys that a process has cached for longer than a minute', () => {
  beforeAll(() => start({ ...patientStore, ...alwaysOld, storeFailuresMax: 1_000_000 }, { relayed: true }));
  afterAll(stop);

  const quotaName = () => redisKeys.quota.name(fleet.prefix, id);

  it('are read once by each process, however many requests they send', async () => {
    await directory.issue(id, [secret]);
    const lookUps = await countLookUps(async () => {
      for (let time = 0; time < 5; time++) expect(await statusesOf(secret)).toEqual([200, 200, 200]);
    });
    expect(lookUps).toBe(fleet.origins.length);
  });

  it.each(keyEndings)(
    'get 401 from every process with the next request when they are %s',
    async (_, change) => {
      await directory.issue(id, [secret]);
      expect(await statusesOf(secret)).toEqual([200, 200, 200]);
      await change(directory, id);
      expect(await statusesOf(secret)).toEqual([401, 401, 401]);
    },
  );

  it.each(keyEndings)(
    'get 401 also if Redis has no data about their counts before and after they are %s',
    async (_, change) => {
      await directory.issue(id, [secret]);
      await fleet.inspector.del(quotaName());
      expect(await statusesOf(secret)).toEqual([200, 200, 200]);
      await fleet.inspector.del(quotaName());
      await change(directory, id);
      await fleet.inspector.del(quotaName());
      expect(await statusesOf(secret)).toEqual([401, 401, 401]);
    },
  );

  it('get the limits of the record that Redis has after a failover, also if Redis has lost their last change', async () => {
    await directory.issue(id, [secret]);
    expect(await statusesOf(secret)).toEqual([200, 200, 200]);
    const names = [quotaName(), redisKeys.directoryRecord.name(fleet.prefix, id)];
    const saved = await Promise.all(names.map((name) => fleet.inspector.dumpBuffer(name)));
    await directory.edit(id, { plan: 'pro' });
    expect((await send(0, secret)).headers['x-ratelimit-limit']).toBe('300');
    for (const [index, name] of names.entries()) {
      await fleet.inspector.restore(name, 0, saved[index] ?? '', 'REPLACE');
    }
    for (const process of fleet.origins.keys()) {
      expect((await send(process, secret)).headers['x-ratelimit-limit']).toBe('60');
    }
  });

  it('are read again when their secret has expired, and are served if the expiry was extended', async () => {
    const ended = { ...secretOf(secret), expiresMs: Date.now() - 1 };
    await directory.issue(id, [], { secrets: [ended, secretOf(`${secret}-other`)] });
    expect(await statusesOf(`${secret}-other`)).toEqual([200, 200, 200]);
    expect(await statusesOf(secret)).toEqual([401, 401, 401]);
    await directory.edit(id, { secrets: [secretOf(secret)] });
    expect(await statusesOf(secret)).toEqual([200, 200, 200]);
  });

  it('are served with a secret whose leak was withdrawn', async () => {
    const leak = { atMs: Date.now(), by: 'test', ended: true };
    await directory.issue(id, [], { secrets: [{ ...secretOf(secret), leak }] });
    expect(await statusesOf(secret)).toEqual([401, 401, 401]);
    await directory.edit(id, { secrets: [secretOf(secret)] });
    expect(await statusesOf(secret)).toEqual([200, 200, 200]);
  });

  it('may have more requests at the same time as soon as an operator allows that, although memory shows that the limit is reached', async () => {
    await directory.issue(id, [secret], { concurrent: 1 });
    const held = await holdRequest(secret);
    expect((await send(0, secret)).statusCode).toBe(429);
    await directory.edit(id, { concurrent: 2 });
    expect((await send(0, secret)).statusCode).toBe(200);
    await directory.edit(id, { disabled: true });
    expect((await send(0, secret)).statusCode).toBe(401);
    held.destroy();
  });

  /** Begins a request whose body does not arrive, so the request counts towards the concurrency limit. */
  async function holdRequest(secret: string): Promise<Socket> {
    const { port } = new URL(fleet.origins[0] ?? '');
    const socket = connect(Number(port), '127.0.0.1');
    onTestFinished(() => void socket.destroy());
    socket.write(
      `POST /v1/pets HTTP/1.1\r\nHost: test\r\nAuthorization: Bearer ${secret}\r\nContent-Type: application/json\r\nContent-Length: 10\r\n\r\n{`,
    );
    await until('the request counts', async () => {
      const leases = await fleet.inspector.hget(quotaName(), 'leases');
      return leases !== null;
    });
    return socket;
  }
});

describe('keys that a process has packed, because it used other keys more recently', () => {
  beforeAll(() => start({ ...patientStore, ...alwaysOld, directoryCachedKeysMax: 1 }));
  afterAll(stop);

  it('are served without a further look-up', async () => {
    const secrets = ['a', 'b', 'c'].map((name) => `${secret}-${name}`);
    for (const one of secrets) await directory.issue(`${id}-${one}`, [one]);
    const lookUps = await countLookUps(async () => {
      for (const one of [...secrets, ...secrets, ...secrets]) {
        expect(await statusesOf(one)).toEqual([200, 200, 200]);
      }
    });
    expect(lookUps).toBe(secrets.length * fleet.origins.length);
  });

  it.each(keyEndings)(
    'get 401 from every process with the next request when they are %s',
    async (_, change) => {
      await directory.issue(id, [secret]);
      await directory.issue(`${id}-other`, [`${secret}-other`]);
      expect(await statusesOf(secret)).toEqual([200, 200, 200]);
      expect(await statusesOf(`${secret}-other`)).toEqual([200, 200, 200]);
      await change(directory, id);
      expect(await statusesOf(secret)).toEqual([401, 401, 401]);
    },
  );
});

describe('keys that a process has cached for longer than a minute, when Redis replies too late for a decision', () => {
  const late = { storeDeadlineMs: 150, storeFailuresMax: 1_000_000 };
  beforeAll(() => start({ ...patientStore, ...alwaysOld, ...late }, { relayed: true }));
  afterAll(stop);

  it.each(keyEndings.slice(0, 3))(
    'get 401 from every process with the next request after they are %s',
    async (_, change) => {
      await directory.issue(id, [secret]);
      await until('all have read the key', async () =>
        (await statusesOf(secret)).every((status) => status === 200),
      );
      await untilAvailable(true);
      // Far above the deadline, so that a pause of the machine does not let a reply arrive together with the deadline.
      fleet.relay?.delay({ toServerMs: 0, toClientMs: 1_500 });
      onTestFinished(() => fleet.relay?.delay({ toServerMs: 0, toClientMs: 0 }));
      expect(await statusesOf(secret)).toEqual([200, 200, 200]);
      await change(directory, id);
      expect(await statusesOf(secret)).toEqual([401, 401, 401]);
      const decidedAlone = () =>
        fleet.gateways.flatMap(({ lines }) =>
          lines.filter((line) => line.keyId === id && line.status === 200 && line.source === 'local'),
        );
      await until('the log shows the decisions without Redis', () => decidedAlone().length >= 3);
    },
  );
});

describe.each([
  alwaysOld,
  { directoryCachedKeysMax: 0 },
  { directoryCachedKeysMax: 0, directoryPackedBytesMax: 0 },
])('when the cached key is dropped before a request uses it (%o)', (forgotten) => {
  beforeAll(() => start({ ...patientStore, ...forgotten }, { gateways: 1 }));
  afterAll(stop);

  it('a valid key is served, and a disabled key and an unknown secret get 401', async () => {
    await directory.issue(id, [secret]);
    await directory.issue(`${id}-disabled`, [`${secret}-disabled`], { disabled: true });
    const statuses = [];
    for (const one of [secret, `${secret}-disabled`, `${secret}-unknown`]) {
      statuses.push((await send(0, one)).statusCode);
    }
    expect(statuses).toEqual([200, 401, 401]);
  });
});

describe('keys of the directory, when replies from Redis are lost', () => {
  beforeAll(() => start({ ...steadyStore, storeSilenceMaxMs: 20_000 }, { relayed: true }));
  afterAll(stop);

  it('are served from the cache, other keys get 503, and a revoked key is refused with its next shared decision', async () => {
    await directory.issue(id, [secret], { plan: 'business' });
    await directory.issue(`${id}-unread`, [`${secret}-unread`]);
    await until('all have read it', async () => (await statusesOf(secret)).every((status) => status === 200));

    fleet.relay?.delay({ toServerMs: 0, toClientMs: 60_000 });
    await directory.edit(id, { disabled: true });
    await untilAvailable(false);
    expect(await statusesOf(secret)).toEqual([200, 200, 200]);
    expect((await send(1, configured.secret)).statusCode).toBe(200);
    const unread = await send(0, `${secret}-unread`);
    expect([unread.statusCode, unread.headers['retry-after']]).toEqual([503, '1']);

    fleet.relay?.delay({ toServerMs: 0, toClientMs: 0 });
    fleet.relay?.cut();
    await untilAvailable(true);
    expect(await statusesOf(secret)).toEqual([401, 401, 401]);
    await expect.poll(async () => (await send(0, `${secret}-unread`)).statusCode).toBe(200);
  });
});

/** Counts the look-ups in the key directory while `act` runs. A look-up reads the Redis key of a digest. */
async function countLookUps(act: () => Promise<unknown>): Promise<number> {
  let lookUps = 0;
  let isOver = false;
  const monitor = await monitorRedis(fleet.redis.port, ([command = '', argument = '']) => {
    if (command.toLowerCase() === 'get' && argument.includes(':digest:')) lookUps++;
    isOver ||= argument === 'the end of the count';
  });
  await act();
  await fleet.inspector.echo('the end of the count');
  await until('Redis has reported all commands', () => isOver);
  monitor.stop();
  return lookUps;
}

async function untilAvailable(isAvailable: boolean): Promise<void> {
  await until(`all are ${isAvailable ? 'ok' : 'degraded'}`, async () => {
    const states = await Promise.all(fleet.gateways.map(readiness));
    return states.every(({ body }) => (body.status === 'ok') === isAvailable);
  });
}
