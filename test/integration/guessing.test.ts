import { Agent, request } from 'undici';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { type Fleet, readiness, startFleetHere } from '../support/fleet.ts';
import { freshWindows } from '../support/fresh-windows.ts';
import { makeCustomKey, type RunningGateway } from '../support/gateway-process.ts';
import { patientStore } from '../support/tuning.ts';
import { until } from '../support/until.ts';

const perMinute = 20;
const key = makeCustomKey(1_000_000, 1_000_000);
let fleet: Fleet<RunningGateway>;

beforeAll(async () => {
  const tuning = { bounds: patientStore, windowsMs: freshWindows(Date.now()) };
  fleet = await startFleetHere({
    starts: [{ tuning }, { tuning }],
    config: { keys: [key.entry], addressBucket: { perMinute } },
  });
  // A gateway that is not connected to Redis yet decides requests without Redis.
  for (const gateway of fleet.gateways)
    await until('Redis decides', async () => (await readiness(gateway)).body.status === 'ok');
});
afterAll(() => fleet.stop());

it('guessed keys are refused above the bucket of the true peer address, over all gateways, for any X-Forwarded-For', async () => {
  const guesser = new Agent({ localAddress: '127.0.0.1' });
  const statuses: number[] = [];
  for (let guess = 0; guess < 3 * perMinute; guess += 1) {
    const forged = `10.0.${guess}.1`;
    statuses.push(
      await get(guess, guesser, {
        authorization: `Bearer guess-${guess}`,
        'x-forwarded-for': forged,
        'x-real-ip': forged,
        forwarded: `for=${forged}`,
      }),
    );
  }
  expect(statuses).toEqual([
    ...Array.from({ length: perMinute }, () => 401),
    ...Array.from({ length: 2 * perMinute }, () => 429),
  ]);

  const valid = { authorization: `Bearer ${key.secret}` };
  expect([await get(0, guesser, valid), await get(1, guesser, valid)]).toEqual([200, 200]);

  const neighbour = new Agent({ localAddress: '127.0.0.2' });
  expect([await get(0, neighbour, {}), await get(1, neighbour, {})]).toEqual([401, 401]);
  await Promise.all([guesser.close(), neighbour.close()]);
});

/** Sends a request to the gateways in turn. */
async function get(turn: number, dispatcher: Agent, headers: Record<string, string>): Promise<number> {
  const origin = fleet.origins[turn % fleet.origins.length];
  const { statusCode, body } = await request(`${origin}/v1/pets`, { dispatcher, headers });
  await body.dump();
  return statusCode;
}
