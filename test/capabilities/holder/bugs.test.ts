import { pino } from 'pino';
import { expect, it, onTestFinished, vi } from 'vitest';
import { createGateway } from '../../support/create-gateway.ts';
import { makeKey } from '../../support/gateway-process.ts';
import { settingsOf } from '../../support/settings-of.ts';
import { until } from '../../support/until.ts';

/** Row 30 of the list of faults, for the page of key holders: a bug in a step ends only the request in which it is thrown. */
const injected = vi.hoisted(() => ({ into: '' }));

vi.mock('../../../gateway/capabilities/holder/limits-view.ts', async (original) => {
  const module = await original<typeof import('../../../gateway/capabilities/holder/limits-view.ts')>();
  const limitsView: typeof module.limitsView = (...args) => {
    if (injected.into === 'limitsView') throw new Error('injected into limitsView');
    return module.limitsView(...args);
  };
  return { ...module, limitsView };
});
vi.mock('../../../gateway/request/limit/limiter.ts', async (original) => {
  const module = await original<typeof import('../../../gateway/request/limit/limiter.ts')>();
  const createLimiter: typeof module.createLimiter = (options) => {
    const limiter = module.createLimiter(options);
    const readOwn: typeof limiter.readOwn = (...args) => {
      if (injected.into === 'readOwn') throw new Error('injected into readOwn');
      return limiter.readOwn(...args);
    };
    return { ...limiter, readOwn };
  };
  return { ...module, createLimiter };
});

it.each(['limitsView', 'readOwn'])(
  'a bug in %s gets 500 and is logged, and the next request succeeds',
  async (step) => {
    const key = makeKey({ plan: 'business' });
    const errors: string[] = [];
    const lines: string[] = [];
    const gateway = createGateway({
      settings: await settingsOf({
        upstream: { url: 'http://127.0.0.1:1' },
        keys: [key.entry],
        limitsPath: '/limits',
      }),
      log: {
        logger: pino({ level: 'error' }, { write: (line) => void errors.push(line) }),
        access: (line) => void lines.push(line),
      },
    });
    const { port } = (await gateway.start()).listen;
    onTestFinished(() => gateway.drain({ graceMs: 0 }));
    const read = () =>
      fetch(`http://127.0.0.1:${port}/limits`, { headers: { authorization: `Bearer ${key.secret}` } });
    injected.into = step;
    const failed = await read();
    injected.into = '';
    expect([failed.status, await failed.json()]).toMatchObject([500, { status: 500 }]);
    await until('the bug and its line are logged', () => lines.length === 1 && errors.length > 0);
    expect(errors.join('')).toContain(`injected into ${step}`);
    expect((await read()).status).toBe(200);
  },
);
