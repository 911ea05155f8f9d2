import { afterAll, beforeAll, expect, it } from 'vitest';
import { askAdmin, makeToken } from '../support/admin-client.ts';
import { type Fleet, startFleet } from '../support/fleet.ts';
import { patientStore } from '../support/tuning.ts';
import { until } from '../support/until.ts';

/** Row 33 of the list of faults: processes are killed while they issue a key. */

const tuning = { bounds: patientStore };
const writer = makeToken('write');
let fleet: Fleet;
beforeAll(async () => {
  fleet = await startFleet({
    starts: [{ tuning }, { tuning }, { tuning }],
    config: {
      keys: { directory: true },
      admin: { host: '127.0.0.1', port: 0, tokens: [writer.entry] },
    },
    relayed: true,
  });
  for (const process of fleet.gateways.keys()) {
    await until('it has Redis', async () => (await issue(process, 'first').key()).status < 300);
  }
});
afterAll(() => fleet.stop());

const body = (id: string) => ({ id, plan: 'free' });

function issue(process: number, id: string) {
  const port = Number(new URL(fleet.gateways[process]?.adminUrl ?? '').port);
  const options = { token: writer.token, method: 'POST', headers: { 'idempotency-key': id } };
  return {
    key: () => askAdmin(port, '/api/v1/keys', { ...options, json: body(id) }),
    secret: () => askAdmin(port, `/api/v1/keys/${id}/secrets`, { ...options, json: {} }),
  };
}

/**
 * Kills a process that issues a key, as soon as this Redis key exists. Replies from Redis are delayed, so the process is between two steps
 * when it is killed.
 */
async function killOn(process: number, id: string, redisKey: string): Promise<void> {
  fleet.relay?.delay({ toServerMs: 0, toClientMs: 3_000 });
  const lost = issue(process, id)
    .key()
    .then(
      () => 'answered',
      () => 'lost',
    );
  await until(`${redisKey} is there`, async () => (await fleet.inspector.keys(redisKey)).length > 0);
  await fleet.gateways[process]?.stop('SIGKILL');
  fleet.relay?.delay({ toServerMs: 0, toClientMs: 0 });
  expect(await lost).toBe('lost');
}

async function statusOf(process: number, secret: string): Promise<number> {
  const headers = { authorization: `Bearer ${secret}` };
  const response = await fetch(`${fleet.origins[process]}/v1/pets`, { headers });
  await response.arrayBuffer();
  return response.status;
}

it('a request whose process was killed before the record makes the key when it is repeated', async () => {
  await killOn(0, 'early', 'test:directory:once:*');
  expect(await fleet.inspector.exists('test:{early}:key')).toBe(0);
  await until('Redis is quick again', async () => (await issue(2, 'other').key()).status < 300);
  const { status, body } = await issue(1, 'early').key();
  expect([status, await statusOf(1, body.secret), await statusOf(2, body.secret)]).toEqual([201, 200, 200]);
  expect((await issue(2, 'early').key()).status).toBe(200);
});

it('a process that is killed right after the record leaves a whole key: the repeated request finds it, and another secret works', {
  tags: 'full',
}, async () => {
  await killOn(1, 'late', 'test:{late}:key');
  expect(await fleet.inspector.exists('test:{late}:key')).toBe(1);
  await until('Redis is quick again', async () => (await issue(2, 'other').key()).status < 300);
  const { status, body } = await issue(2, 'late').key();
  expect([status, body.id, body.secret]).toEqual([200, 'late', undefined]);
  const { digestStart } = body.secrets[0];
  expect(await fleet.inspector.keys(`test:digest:${digestStart}*`)).toHaveLength(1);
  const another = await issue(2, 'late').secret();
  expect([another.status, await statusOf(2, another.body.secret)]).toEqual([201, 200]);
});
