import { expect, it } from 'vitest';
import { measureSlowClients } from '../faults/slow-clients.ts';
import { measureSoak } from '../faults/soak.ts';

it('beside 4,000 idle sockets and clients that send or read slowly all good traffic is answered, and the sockets are freed', async () => {
  const found = await measureSlowClients({
    idle: 4_000,
    slow: 30,
    goodRequests: 400,
    bounds: {
      headersTimeoutMs: 5_000,
      requestTimeoutMs: 5_000,
      writeTimeoutMs: 3_000,
      keepAliveTimeoutMs: 5_000,
      connectionsCheckingIntervalMs: 200,
    },
  });
  expect(found.failures).toEqual([]);
  expect(found.good).toEqual({ 200: 800 });
  expect(found.descriptors.after).toBeLessThanOrEqual(found.descriptors.before + 10);
});

it('clients that come and go leave no descriptor open', async () => {
  const found = await measureSoak({ seconds: 3 });
  expect(found.failures).toEqual([]);
  expect(found.descriptors.after).toBeLessThanOrEqual(found.descriptors.before + 10);
});
