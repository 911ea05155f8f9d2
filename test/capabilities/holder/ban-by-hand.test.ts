import { expect, it } from 'vitest';
import { startGateways } from '../../admin/keys/change/change-fixture.ts';
import { makeKey } from '../../support/gateway-process.ts';

it.each([
  [false, 'The operator of the API banned the key.'],
  [true, 'asked by mail'],
])(
  'the holder of a key that is banned by hand reads the reason only if it is shown: %s',
  async (showReason, reason) => {
    const key = makeKey({ plan: 'free', id: 'acme' });
    const overrides = { keys: [key.entry], limitsPath: '/limits', bans: { showReason } };
    const { gateways } = await startGateways(1, { overrides });
    const untilAt = new Date(Date.now() + 3_600_000).toISOString();
    await gateways[0]?.ask('POST', '/keys/acme/ban', { untilAt, reason: 'asked by mail' });
    const response = await fetch(`http://127.0.0.1:${gateways[0]?.publicPort}/limits`, {
      headers: { authorization: `Bearer ${key.secret}` },
    });
    expect([response.status, (await response.json()).ban]).toEqual([200, { untilAt, reason }]);
  },
);
