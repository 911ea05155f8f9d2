import { expect, it } from 'vitest';
import { type ChangedGateway, fileOf, startGateways } from '../admin/keys/change/change-fixture.ts';
import { makeKey } from '../support/gateway-process.ts';

/** A second that begins in `seconds`. */
function secondIn(seconds: number): { readonly from: string; readonly atMs: number } {
  const atMs = (Math.floor(Date.now() / 1_000) + 1 + seconds) * 1_000;
  return { from: new Date(atMs).toISOString().replace('.000', ''), atMs };
}

async function planOf(gateway: ChangedGateway, id: string): Promise<unknown[]> {
  const { body } = await gateway.ask('GET', `/keys/${id}`);
  return [body.plan, body.windows.map(({ limit }: { limit: number }) => limit), body.upcoming];
}

it('a key of a file and a key of the directory change their plan at the date, on every process', async () => {
  const ofFile = makeKey({ id: 'in-file', plan: 'free' });
  const { gateways } = await startGateways(2, { keys: [ofFile.entry] });
  const [first] = gateways as [ChangedGateway];
  const { body } = await first.ask('POST', '/keys', { id: 'issued', plan: 'free' });
  const secrets = [body.secret, ofFile.secret];

  /** Whether everything before the date was seen before the date, which a slow machine may miss. */
  async function seeBefore({ from, atMs }: ReturnType<typeof secondIn>): Promise<boolean> {
    const changes = [{ from, plan: 'pro' }];
    const keysFile = await fileOf([{ ...ofFile.entry, changes }]);
    for (const { reload } of gateways) await reload({ keys: { directory: true, file: keysFile } });
    await first.ask('PATCH', '/keys/issued', { plan: 'free', changes });
    const upcoming = [{ fromAt: new Date(atMs).toISOString(), plan: 'pro', limits: { perMinute: 50 } }];
    const seen = [];
    for (const gateway of gateways)
      for (const id of ['in-file', 'issued']) seen.push(await planOf(gateway, id));
    for (const { call } of gateways) for (const secret of secrets) seen.push(await call(secret));
    if (Date.now() >= atMs) return false;
    const before = ['free', [5, 100], upcoming];
    expect(seen).toEqual([before, before, before, before, 200, 200, 200, 200]);
    return true;
  }

  let [seconds, wasSeen] = [1, false];
  for (; !wasSeen && seconds <= 60; seconds *= 3) wasSeen = await seeBefore(secondIn(seconds));
  expect(wasSeen).toBe(true);
  for (const gateway of gateways) {
    for (const id of ['in-file', 'issued'])
      await expect
        .poll(() => planOf(gateway, id), { timeout: 1_000 * seconds + 10_000 })
        .toEqual(['pro', [50], undefined]);
    // The earlier requests still count, and the old limit of 5 a minute refuses none of these requests.
    for (const secret of secrets)
      for (let request = 0; request < 5; request++) expect(await gateway.call(secret)).toBe(200);
  }
  const { plans } = (await first.ask('GET', '/plans')).body;
  const keysOf = (plan: string) => plans.find(({ name }: { name: string }) => name === plan).keys;
  expect([keysOf('free'), keysOf('pro')]).toMatchObject([0, 2]);
});

it('an edit of the plan starts from the plan that the key has, and withdraws later changes only by name', async () => {
  const { gateways } = await startGateways(1);
  const [gateway] = gateways as [ChangedGateway];
  const past = [
    { from: '2020-01-01', plan: 'pro' },
    { from: '2099-01-01', plan: 'free' },
  ];
  await gateway.ask('POST', '/keys', { id: 'a', plan: 'free', changes: past });
  expect((await gateway.ask('GET', '/keys/a')).body.plan).toBe('pro');

  const renamed = await gateway.ask('PATCH', '/keys/a', { name: 'A' });
  expect(renamed.body).toMatchObject({ plan: 'free', changes: past });
  const withdrawn = await gateway.ask('PATCH', '/keys/a', { changes: null });
  expect(withdrawn.body).toMatchObject({ plan: 'pro' });
  expect(withdrawn.body.changes).toBeUndefined();

  await gateway.ask('PATCH', '/keys/a', { plan: 'free', changes: past });
  const moved = await gateway.ask('PATCH', '/keys/a', { plan: 'enterprise', limits: { perDay: 7 } });
  expect(moved.body).toMatchObject({ plan: 'enterprise', limits: { perDay: 7 }, changes: [past[1]] });
  expect((await gateway.ask('GET', '/keys/a')).body.upcoming).toMatchObject([
    { fromAt: '2099-01-01T00:00:00.000Z', plan: 'free' },
  ]);
});

it.each([
  [[{ from: '2099-01-01', plan: 'gold' }], 'changes[0].plan'],
  [[{ from: '2099-01-01', plan: 'enterprise' }], 'changes[0].limits'],
  [[{ from: '2099-01-01', plan: 'pro', limits: { perDay: 1 } }], 'changes[0].limits'],
  [[{ from: 'soon', plan: 'pro' }], 'changes[0].from'],
  [
    [
      { from: '2099-01-02', plan: 'pro' },
      { from: '2099-01-01T23:59:59Z', plan: 'free' },
    ],
    'changes[1].from',
  ],
  [[], 'changes'],
])('the admin API refuses the changes %j, and names %s', async (changes, named) => {
  const { gateways } = await startGateways(1);
  const [gateway] = gateways as [ChangedGateway];
  const refused = await gateway.ask('POST', '/keys', { id: 'a', plan: 'free', changes });
  expect([refused.status, JSON.stringify(refused.body)]).toEqual([400, expect.stringContaining(named)]);
});
