/**
 * @module-tag full
 *
 * In `npm test`: `test/integration/allowed-addresses.test.ts` and `test/integration/plan-changes.test.ts`.
 */
import { afterEach, expect, it, vi } from 'vitest';
import { foreignAddressesChargeNoKey, plansChangeOnTheClockOfRedis } from './gateway-guarantees.ts';

/**
 * Checks that the functions in `gateway-guarantees.ts` detect a faulty gateway. Each test starts a gateway with one mistake, and expects a
 * function to throw an error.
 */
const mistake = vi.hoisted(() => ({ made: '' }));

vi.mock('../../gateway/request/path/refuse-unauthenticated.ts', async (original) => {
  const module = (await original()) as typeof import('../../gateway/request/path/refuse-unauthenticated.ts');
  const refuseUnauthenticated: typeof module.refuseUnauthenticated = async (exchange, stations, caller) => {
    const keyId = 'presented' in caller ? caller.presented.keyId : undefined;
    const key = keyId === undefined ? undefined : exchange.snapshot.settings.keys.get(keyId);
    if (mistake.made === 'the address is checked after charging' && key !== undefined)
      await stations.limiter.decide(key, exchange.snapshot.rules, { units: 1 });
    return module.refuseUnauthenticated(exchange, stations, caller);
  };
  return { ...module, refuseUnauthenticated };
});

vi.mock('../../gateway/request/limit/limiter.ts', async (original) => {
  const module = (await original()) as typeof import('../../gateway/request/limit/limiter.ts');
  const createLimiter: typeof module.createLimiter = (deps) => {
    const limiter = module.createLimiter(deps);
    if (mistake.made !== 'plans change by the clock of the process') return limiter;
    return { ...limiter, storeNowMs: deps.nowMs, readStoreNowMs: async () => deps.nowMs() };
  };
  return { ...module, createLimiter };
});

afterEach(() => {
  mistake.made = '';
});

it.each([
  {
    made: 'the address is checked after charging',
    guarantee: foreignAddressesChargeNoKey,
    caughtBy: /state: 'unused'/,
  },
  {
    made: 'plans change by the clock of the process',
    guarantee: plansChangeOnTheClockOfRedis,
    caughtBy: /limit: 5|process 0 changes before the date/,
  },
])('the guarantees catch a gateway in which $made', async ({ made, guarantee, caughtBy }) => {
  mistake.made = made;
  await expect(guarantee()).rejects.toThrow(caughtBy);
});
