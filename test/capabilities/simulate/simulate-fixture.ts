import { pino } from 'pino';
import { onTestFinished } from 'vitest';
import type { Gateway } from '../../../gateway/server/gateway.ts';
import type { Bounds } from '../../../gateway/shared/timeouts-and-sizes.ts';
import { askAdmin, makeToken } from '../../support/admin-client.ts';
import { createGateway } from '../../support/create-gateway.ts';
import { makeKey } from '../../support/gateway-process.ts';
import { settingsOf } from '../../support/settings-of.ts';
import { tunedBounds } from '../../support/tuned-bounds.ts';

const { token, entry } = makeToken('read');
export const minuteMs = 60_000;
export const noon = Math.floor(Date.now() / 86_400_000) * 86_400_000 + 12 * 3_600_000;
export const at = (minute: number) => `${new Date(noon + minute * minuteMs).toISOString().slice(0, 19)}Z`;

/** Starts a gateway whose clock moves only when the test moves it. */
export async function startSimulating(config: Record<string, unknown>, own: Partial<Bounds> = {}) {
  let nowMs = noon;
  const settings = (changed: Record<string, unknown>) =>
    settingsOf({
      upstream: { url: 'http://127.0.0.1:1' },
      admin: { host: '127.0.0.1', port: 0, tokens: [entry] },
      ...config,
      ...changed,
    });
  const gateway: Gateway = createGateway({
    settings: await settings({}),
    log: { logger: pino({ level: 'silent' }), access: () => {} },
    nowMs: () => nowMs,
    bounds: tunedBounds({ simulationTimeoutMs: 60_000, ...own }),
  });
  const { listen, admin } = await gateway.start();
  onTestFinished(() => gateway.drain({ graceMs: 0 }));
  return {
    reload: async (changed: Record<string, unknown>) => gateway.reload(await settings(changed)),
    /** Sends requests in a minute, which is given by its number. Minute 0 begins at noon. `path` begins with `/v1`. */
    async send(secret: string, minute: number, requests: number, path = '/v1/nothing'): Promise<void> {
      nowMs = noon + minute * minuteMs;
      for (let sent = 0; sent < requests; sent++) {
        const headers = { authorization: `Bearer ${secret}` };
        await (await fetch(`http://127.0.0.1:${listen.port}${path}`, { headers })).arrayBuffer();
      }
    },
    async simulate(json: object) {
      return (await askAdmin(admin.port, '/api/v1/simulate', { token, method: 'POST', json })).body;
    },
    async refusal(json: object) {
      const { status, body } = await askAdmin(admin.port, '/api/v1/simulate', {
        token,
        method: 'POST',
        json,
      });
      return `${status} ${body.message}`;
    },
  };
}

const acme = makeKey({ id: 'acme', plan: 'free' });

/** Starts a gateway with the plan `free`, whose requests are of the operations `listPets` and `getPet`. */
export async function startGrouped(free: object, keys: readonly { readonly entry: object }[] = [acme]) {
  const gateway = await startSimulating({
    plans: { free },
    keys: keys.map(({ entry }) => entry),
    bans: { after: 1_000 },
  });
  return {
    reload: (plan: object) => gateway.reload({ plans: { free: plan } }),
    /** Sends requests of the operation `listPets` or `getPet` in a minute. Minute 0 begins at noon. */
    send: (minute: number, requests: number, path = '/v1/pets', { secret } = acme) =>
      gateway.send(secret, minute, requests, path),
    simulate: gateway.simulate,
  };
}
