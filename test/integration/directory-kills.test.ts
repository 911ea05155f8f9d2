import { afterAll, beforeAll, expect, it, onTestFinished } from 'vitest';
import { askAdmin, makeToken } from '../support/admin-client.ts';
import { type Fleet, startFleetHere } from '../support/fleet.ts';
import { type RunningGateway, startGateway } from '../support/gateway-process.ts';
import { patientStore } from '../support/tuning.ts';
import { until } from '../support/until.ts';

/** Row 33 of the list of faults: processes are killed while they issue a key. */

const tuning = { bounds: patientStore };
const writer = makeToken('write');
/** The gateways of this fleet run in the process of the test. */
let fleet: Fleet<RunningGateway>;
beforeAll(async () => {
  fleet = await startFleetHere({
    starts: [{ tuning }, { tuning }],
    config: {
      keys: { directory: true },
      admin: { host: '127.0.0.1', port: 0, tokens: [writer.entry] },
    },
    relayed: true,
  });
  for (const gateway of fleet.gateways) await untilConnected(gateway);
});
afterAll(() => fleet.stop());

const body = (id: string) => ({ id, plan: 'free' });

async function untilConnected(gateway: RunningGateway): Promise<void> {
  await until('it has Redis', async () => (await issue(gateway, 'first').key()).status < 300);
}

function issue(gateway: RunningGateway | undefined, id: string) {
  const port = Number(new URL(gateway?.adminUrl ?? '').port);
  const options = { token: writer.token, method: 'POST', headers: { 'idempotency-key': id } };
  return {
    key: () => askAdmin(port, '/api/v1/keys', { ...options, json: body(id) }),
    secret: () => askAdmin(port, `/api/v1/keys/${id}/secrets`, { ...options, json: {} }),
  };
}

/**
 * Starts a process that issues a key, and kills the process as soon as `redisKey` exists in Redis. Replies from Redis are delayed, so the
 * kill happens between two steps of the process.
 */
async function killOn(id: string, redisKey: string): Promise<void> {
  const redis = { url: `redis://127.0.0.1:${fleet.relay?.port}`, prefix: fleet.prefix };
  const killed = await startGateway({ ...fleet.config, redis }, { tuning });
  onTestFinished(async () => void (await killed.stop('SIGKILL')));
  await untilConnected(killed);
  fleet.relay?.delay({ toServerMs: 0, toClientMs: 3_000 });
  const lost = issue(killed, id)
    .key()
    .then(
      () => 'answered',
      () => 'lost',
    );
  await until(`${redisKey} is there`, async () => (await fleet.inspector.keys(redisKey)).length > 0);
  await killed.stop('SIGKILL');
  fleet.relay?.delay({ toServerMs: 0, toClientMs: 0 });
  expect(await lost).toBe('lost');
}

async function statusOf(process: number, secret: string): Promise<number> {
  const headers = { authorization: `Bearer ${secret}` };
  const response = await fetch(`${fleet.origins[process]}/v1/pets`, { headers });
  await response.arrayBuffer();
  return response.status;
}

it('a request whose process was killed before it wrote the record creates the key when it is repeated', async () => {
  const [one, other] = fleet.gateways;
  await killOn('early', 'test:directory:once:*');
  expect(await fleet.inspector.exists('test:{early}:key')).toBe(0);
  await until('Redis is quick again', async () => (await issue(other, 'other').key()).status < 300);
  const { status, body } = await issue(one, 'early').key();
  expect([status, await statusOf(0, body.secret), await statusOf(1, body.secret)]).toEqual([201, 200, 200]);
  expect((await issue(other, 'early').key()).status).toBe(200);
});

it('a process that is killed right after it wrote the record leaves a complete key: the repeated request finds it, and another secret works', {
  tags: 'full',
}, async () => {
  const [, other] = fleet.gateways;
  await killOn('late', 'test:{late}:key');
  expect(await fleet.inspector.exists('test:{late}:key')).toBe(1);
  await until('Redis is quick again', async () => (await issue(other, 'other').key()).status < 300);
  const { status, body } = await issue(other, 'late').key();
  expect([status, body.id, body.secret]).toEqual([200, 'late', undefined]);
  const { digestStart } = body.secrets[0];
  expect(await fleet.inspector.keys(`test:digest:${digestStart}*`)).toHaveLength(1);
  const another = await issue(other, 'late').secret();
  expect([another.status, await statusOf(1, another.body.secret)]).toEqual([201, 200]);
});
