import keySlot from 'cluster-key-slot';
import { afterAll, beforeAll, expect, it, onTestFinished } from 'vitest';
import { decideFunction } from '../../gateway/quota/calls/library.ts';
import { createRedisQuotaStore } from '../../gateway/request/limit/store/redis-quota-store.ts';
import { calendarWindowsMs } from '../../gateway/shared/calendar-windows.ts';
import { connectRedis, type RedisPlace } from '../support/connect-redis.ts';
import { inspect } from '../support/inspect.ts';
import { limitsOf } from '../support/limits-of.ts';
import { oneRun } from '../support/one-run.ts';
import { freshPrefix } from '../support/redis.ts';
import { moveSlot, startCluster } from '../support/start-cluster.ts';
import { type RedisServer, startRedis } from '../support/start-redis.ts';

const bans = { after: 3, withinMs: 60_000, forMs: 60_000, maxMs: 600_000 };
/** A window that does not end during a test. */
const limits = limitsOf({ perMonth: 5 });

let server: RedisServer;
let inspector: ReturnType<typeof inspect>;
beforeAll(async () => {
  server = await startRedis([
    ...['--user', 'script', 'on', '>secret', '~*', '&*', '+@all', '-fcall'],
    ...['--user', 'unloaded', 'on', '>secret', '~*', '&*', '+@all', '-function'],
  ]);
  inspector = inspect(server.url);
});
afterAll(async () => {
  inspector.disconnect();
  await server.stop();
});

it.each([
  ['FUNCTION FLUSH', () => inspector.call('FUNCTION', 'FLUSH')],
  ['SCRIPT FLUSH', () => inspector.call('SCRIPT', 'FLUSH')],
  ['a restart with another library of the same product', loadOlderVersion],
])('after %s the next request is decided as before', async (_, disturb) => {
  const { decide } = await openStore();
  expect(await decide(4)).toMatchObject({ admitted: 4 });
  await disturb();
  expect(await decide(2)).toMatchObject({ admitted: 1, refused: 1 });
  expect(await librariesOn(inspector)).toContain(nameOfLibrary);
});

it('calls of the same moment on a server without the function all get their decisions, and are charged once', async () => {
  const { decide } = await openStore();
  await inspector.call('FUNCTION', 'FLUSH');
  const outcomes = await Promise.all(Array.from({ length: 8 }, () => decide(1)));
  expect(outcomes.map(({ admitted }) => admitted).toSorted()).toEqual([0, 0, 0, 1, 1, 1, 1, 1]);
});

it.each([
  ['FCALL', 'script', /NOPERM .*fcall/],
  ['FUNCTION LOAD', 'unloaded', /NOPERM .*function/],
])(
  'a user whose ACL forbids %s gets the same decisions from a script, and the reason is reported once',
  async (_, username, reason) => {
    await inspector.call('FUNCTION', 'FLUSH');
    const reasons: (string | undefined)[] = [];
    const { decide } = await openStore({ url: server.url, username, password: 'secret' }, reasons);
    expect([await decide(4), await decide(2), await decide(2)]).toMatchObject([
      { admitted: 4 },
      { admitted: 1, refused: 1 },
      { refused: 1, banned: 1 },
    ]);
    expect(reasons).toEqual([expect.stringMatching(reason)]);
    await inspector.acl('SETUSER', username, '+@all');
    const reasonAfterCall = async () => {
      await decide(1);
      return reasons.at(-1);
    };
    await expect.poll(reasonAfterCall, { timeout: 30_000 }).toBeUndefined();
    expect(reasons).toHaveLength(2);
  },
);

it('a server without memory for the library decides with the script until its first write', async () => {
  const { decide } = await openStore();
  const banned = await decide(9);
  expect(banned).toMatchObject({ admitted: 5, refused: 2, banned: 2 });
  await inspector.call('FUNCTION', 'FLUSH');
  await inspector.config('SET', 'maxmemory', '1');
  onTestFinished(() => void inspector.config('SET', 'maxmemory', '0'));
  // Requests of a banned key write nothing.
  expect(await decide(1)).toMatchObject({ admitted: 0, banned: 1 });
});

it('a master to which a slot has just moved decides the next request as before', {
  timeout: 120_000,
}, async () => {
  const cluster = await startCluster({ hasReplicas: false });
  onTestFinished(cluster.stop);
  const { decide, name } = await openStore({ cluster: cluster.urls.slice(0, 1) });
  expect(await decide(4)).toMatchObject({ admitted: 4 });
  const slot = keySlot(name);
  const emptyMaster = await cluster.addMaster();
  await moveSlot(slot, cluster.ownerOf(slot), emptyMaster);
  expect(await decide(2)).toMatchObject({ admitted: 1, refused: 1 });
  // Until the client knows the new master, it decides with the script.
  await expect
    .poll(async () => [await decide(1), await librariesOn(emptyMaster.inspector)])
    .toMatchObject([{ admitted: 0 }, expect.arrayContaining([nameOfLibrary])]);
  await emptyMaster.inspector.call('FUNCTION', 'FLUSH');
  expect(await decide(1)).toMatchObject({ admitted: 0 });
});

it('two versions of the library are used side by side', async () => {
  await loadOlderVersion();
  const { decide } = await openStore();
  await decide(1);
  expect(await librariesOn(inspector)).toEqual(expect.arrayContaining([nameOfLibrary, 'tollgate_older']));
});

const nameOfLibrary = /name=(\S+)/.exec(decideFunction.library)?.[1] ?? '';

async function loadOlderVersion(): Promise<void> {
  await inspector.call('FUNCTION', 'FLUSH');
  const { library, name } = decideFunction;
  await inspector.call(
    'FUNCTION',
    'LOAD',
    library.replaceAll(name, 'tollgate_decide_older').replace(nameOfLibrary, 'tollgate_older'),
  );
}

async function librariesOn(client: typeof inspector): Promise<string[]> {
  return ((await client.call('FUNCTION', 'LIST')) as string[][]).map(([, name = '']) => name);
}

/** A store on a connection of its own, and a key that no other test uses. */
async function openStore(place: RedisPlace = { url: server.url }, reasons: (string | undefined)[] = []) {
  const prefix = freshPrefix();
  const redis = await connectRedis({ prefix, place });
  onTestFinished(() => redis.close());
  const store = createRedisQuotaStore({
    ...{ redis, windowsMs: calendarWindowsMs, keysPerCallMax: 3 },
    ...{ deadlineMs: 20_000, patientDeadlineMs: 20_000, functionRetryMs: 100 },
    onFunctionRefusal: (reason) => void reasons.push(reason),
  });
  return {
    name: `${prefix}:{acme}`,
    async decide(requests: number) {
      const [reply] = await store.decide([{ keyId: 'acme', limits, bans, runs: oneRun(requests) }]);
      if (reply?.kind !== 'decided') throw new Error(JSON.stringify(reply));
      return reply.outcome;
    },
  };
}
