import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, it, onTestFinished } from 'vitest';
import { stringify } from 'yaml';
import { type ChangedGateway, startGateways } from '../../admin/keys/change/change-fixture.ts';
import { readiness, startFleetHere } from '../../support/fleet.ts';
import { makeKey } from '../../support/gateway-process.ts';
import { patientStore } from '../../support/tuning.ts';
import { until } from '../../support/until.ts';

const hourMs = 3_600_000;

/** An API document with a deprecated operation that has these brownouts. */
function apiWith(brownouts: readonly object[]) {
  return {
    openapi: '3.1.0',
    info: { title: 'Old', version: '1' },
    paths: {
      '/pets': { get: { operationId: 'listPets', responses: {} } },
      '/old': {
        get: {
          operationId: 'getOld',
          deprecated: true,
          'x-deprecated-since': '2020-01-01',
          'x-deprecated-sunset': '9000-01-01',
          'x-deprecated-successor': 'listPets',
          'x-brownouts': brownouts,
          responses: {},
        },
      },
    },
  };
}

const iso = (epochMs: number) => new Date(epochMs).toISOString();

async function get(origin: string, secret: string, path = '/v1/old') {
  const headers = { authorization: `Bearer ${secret}` };
  const beganMs = Date.now();
  const response = await fetch(`${origin}${path}`, { headers });
  const body = (await response.json()) as { code?: string; message?: string };
  return { status: response.status, headers: response.headers, body, beganMs, endedMs: Date.now() };
}

/**
 * Gives all gateways a brownout of 6 s that begins after all of them have loaded it. A busy machine may load it too late, so the brownout then
 * begins later.
 *
 * @returns the beginning of the brownout, epoch ms
 */
async function loadBrownout({ gateways }: Awaited<ReturnType<typeof startFleetHere>>): Promise<number> {
  for (let leadMs = 4_000; ; leadMs *= 2) {
    const before = await Promise.all(gateways.map(configVersion));
    const fromMs = Math.ceil(Date.now() / 1_000) * 1_000 + leadMs;
    const edited = stringify(apiWith([{ from: iso(fromMs), for: '6s' }]));
    for (const { configDir } of gateways) await writeFile(join(configDir, 'openapi.yaml'), edited);
    await until('all gateways have loaded the brownout', async () => {
      const after = await Promise.all(gateways.map(configVersion));
      return after.every((version, index) => version !== before[index]);
    });
    if (Date.now() < fromMs) return fromMs;
  }
}

async function configVersion(gateway: Parameters<typeof readiness>[0]): Promise<string> {
  return (await readiness(gateway)).body.config.version;
}

it('all processes begin and end a brownout on the clock of Redis, whatever their own clocks are', async () => {
  const key = makeKey({ plan: 'business' });
  const fleet = await startFleetHere({
    starts: [90_000, -90_000].map((clockSkewMs) => ({ tuning: { bounds: patientStore, clockSkewMs } })),
    config: { keys: [key.entry], api: './openapi.yaml', bans: { after: 1_000_000 } },
    files: { 'openapi.yaml': apiWith([{ from: '8000-01-01', for: '4s' }]) },
  });
  onTestFinished(() => fleet.stop());
  for (const gateway of fleet.gateways)
    await until('Redis decides', async () => (await readiness(gateway)).body.status === 'ok');

  const fromMs = await loadBrownout(fleet);
  const endMs = fromMs + 6_000;

  const responses: (Awaited<ReturnType<typeof get>> & { readonly origin: string })[] = [];
  await until('the brownout is over', async () => {
    for (const origin of fleet.origins) responses.push({ origin, ...(await get(origin, key.secret)) });
    return (responses.at(-1)?.beganMs ?? 0) > endMs;
  });
  const isDuring = ({ beganMs, endedMs }: { beganMs: number; endedMs: number }) =>
    beganMs >= fromMs && endedMs < endMs;
  const isOutside = ({ beganMs, endedMs }: { beganMs: number; endedMs: number }) =>
    endedMs < fromMs || beganMs > endMs;
  expect(responses.filter((one) => isDuring(one) && one.status !== 410)).toEqual([]);
  expect(responses.filter((one) => isOutside(one) && one.status === 410)).toEqual([]);
  for (const origin of fleet.origins) {
    const met = responses.find((one) => one.origin === origin && isDuring(one));
    const left = Number(met?.headers.get('retry-after'));
    expect(met?.body).toEqual({
      code: 'gone',
      status: 410,
      message: `This is a rehearsal of the removal of this operation. It ends at ${iso(endMs).slice(0, 19)}Z, in ${left} s. The operation is removed for good on 9000-01-01T00:00:00Z. A Link header names its successor if there is one.`,
    });
    expect(left).toBeLessThanOrEqual(Math.ceil((endMs - (met?.beganMs ?? 0)) / 1_000));
    expect(left).toBeGreaterThanOrEqual(Math.ceil((endMs - (met?.endedMs ?? 0)) / 1_000));
    expect(met?.headers.get('link')).toContain('rel="successor-version"');
  }
});

it('a grant exempts a key from brownouts, and the list of callers and the explanation of a minute show which keys a brownout refused', async () => {
  // Each brownout of this series lasts an hour, and the first brownout began one second ago.
  const fromMs = Date.now() - 1_000;
  const document = apiWith([{ from: iso(fromMs), every: '2h', for: '1h' }]);
  const [calm, loud] = [makeKey({ id: 'calm', plan: 'pro' }), makeKey({ id: 'loud', plan: 'pro' })];
  const { gateways } = await startGateways(2, {
    keys: [calm.entry, loud.entry],
    api: document,
  });
  const [first, second] = gateways;
  if (first === undefined || second === undefined) throw new Error('no gateway was started');
  const statuses = ({ secret }: { secret: string }) =>
    Promise.all(
      gateways.map(async (one: ChangedGateway) => {
        return (await get(`http://127.0.0.1:${one.publicPort}`, secret)).status;
      }),
    );

  expect([await statuses(calm), await statuses(loud)]).toEqual([
    [410, 410],
    [410, 410],
  ]);
  // A request that the brownout refuses is charged.
  expect((await first.ask('GET', '/keys/loud')).body.windows).toMatchObject([{ name: 'minute', used: 2 }]);

  const untilAt = iso(Date.now() + hourMs);
  expect(await first.ask('POST', '/keys/loud/grant', { untilAt })).toMatchObject({
    status: 400,
    body: { message: 'The request body must have `limits`, `noBrownouts` or both.' },
  });
  const granted = await first.ask('POST', '/keys/loud/grant', { noBrownouts: true, untilAt });
  expect(granted).toMatchObject({ status: 200, body: { grant: { noBrownouts: true } } });
  expect(granted.body.grant).not.toHaveProperty('limits');
  await expect.poll(() => statuses(loud), { timeout: 60_000 }).toEqual([200, 200]);
  expect(await statuses(calm)).toEqual([410, 410]);
  expect((await second.ask('GET', '/keys/loud')).body.grant).toMatchObject({ noBrownouts: true });

  const callers = async () => {
    const { body } = await first.ask('GET', '/operations/getOld/callers');
    return Object.fromEntries(
      body.callers.map(({ id, brownouts }: { id: string; brownouts?: object }) => [id, brownouts]),
    );
  };
  await expect
    .poll(callers, { timeout: 60_000 })
    .toMatchObject({ loud: { stillCalls: true }, calm: { requests: 4, stillCalls: false } });
  const explained = async () => (await first.ask('GET', `/keys/calm/why?at=${iso(fromMs)}`)).body.refusals;
  await expect.poll(explained, { timeout: 60_000 }).toContainEqual({
    by: 'brownout',
    requests: expect.any(Number),
    per: 'hour',
    sentence: expect.stringMatching(
      /^Brownouts refused \d admitted requests in the hour from .*: getOld \d\. They are recorded by hour only\.$/,
    ),
  });
  const { operations } = (await first.ask('GET', '/operations')).body;
  expect(operations[1].deprecation.brownouts).toEqual([{ from: iso(fromMs), every: '2h', for: '1h' }]);

  expect((await first.ask('DELETE', '/keys/loud/grant')).status).toBe(200);
  await expect.poll(() => statuses(loud), { timeout: 60_000 }).toEqual([410, 410]);
});
