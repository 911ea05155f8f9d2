import type { LookupAddress } from 'node:dns';
import { setTimeout as sleep } from 'node:timers/promises';
import { expect, it } from 'vitest';
import { createSharedLookup } from '../../../gateway/shared/http/shared-lookup.ts';
import { until } from '../../support/until.ts';

const slowLookupMs = 50;
const address: LookupAddress = { address: '192.0.2.1', family: 4 };

/** A name server whose answers the test sends. `running` has the lookups that wait for an answer. */
function createNameServer() {
  const running: { hostname: string; answer(): void; fail(): void }[] = [];
  const end = (entry: (typeof running)[number]) => running.splice(running.indexOf(entry), 1);
  const look = createSharedLookup({
    slowLookupMs,
    slowHostsMax: 2,
    lookUp: (hostname) =>
      new Promise((resolve, reject) => {
        const entry = {
          hostname,
          answer: () => void (end(entry) && resolve([address])),
          fail: () => void (end(entry) && reject(new Error(`${hostname} is unknown`))),
        };
        running.push(entry);
      }),
  });
  return {
    hosts: () => running.map(({ hostname }) => hostname),
    first: (hostname: string) => running.find((one) => one.hostname === hostname),
    find: (hostname: string) =>
      new Promise<unknown>((resolve) =>
        look(hostname, { all: true }, (error, found) => resolve(error?.message ?? found)),
      ),
    look,
  };
}

/** Makes a host slow: its lookup fails late. */
async function failLate(server: ReturnType<typeof createNameServer>, hostname: string): Promise<void> {
  const found = server.find(hostname);
  await sleep(2 * slowLookupMs);
  server.first(hostname)?.fail();
  expect(await found).toBe(`${hostname} is unknown`);
}

it('connections to one host share a lookup, and a later connection looks the host up again', async () => {
  const server = createNameServer();
  const both = [server.find('a.test'), server.find('a.test')];
  expect(server.hosts()).toEqual(['a.test']);
  server.first('a.test')?.answer();
  expect(await Promise.all(both)).toEqual([[address], [address]]);
  void server.find('a.test');
  expect(server.hosts()).toEqual(['a.test']);
});

it('hosts whose last lookup was slow are looked up one after the other, and delay no other host', async () => {
  const server = createNameServer();
  await failLate(server, 'dead.test');
  await failLate(server, 'silent.test');
  const slow = [server.find('dead.test'), server.find('silent.test'), server.find('dead.test')];
  const fine = server.find('fine.test');
  await until('the lookups have begun', () => server.hosts().length === 2);
  expect(server.hosts().sort()).toEqual(['dead.test', 'fine.test']);
  server.first('fine.test')?.answer();
  expect(await fine).toEqual([address]);
  server.first('dead.test')?.fail();
  await until('the next lookup has begun', () => server.hosts().includes('silent.test'));
  server.first('silent.test')?.answer();
  expect(await Promise.all(slow)).toEqual(['dead.test is unknown', [address], 'dead.test is unknown']);
});

it('a caller that wants one address gets the first address', async () => {
  const server = createNameServer();
  const found = new Promise<unknown>((resolve) =>
    server.look('a.test', {}, (_error, one, family) => resolve([one, family])),
  );
  server.first('a.test')?.answer();
  expect(await found).toEqual(['192.0.2.1', 4]);
});
