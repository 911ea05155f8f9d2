import { pino } from 'pino';
import { onTestFinished } from 'vitest';
import type { Gateway } from '../../../gateway/server/gateway.ts';
import type { Bounds } from '../../../gateway/shared/timeouts-and-sizes.ts';
import { askAdmin, makeToken } from '../../support/admin-client.ts';
import { createGateway } from '../../support/create-gateway.ts';
import { makeKey } from '../../support/gateway-process.ts';
import { settingsOf } from '../../support/settings-of.ts';
import { tunedBounds } from '../../support/tuned-bounds.ts';
import { until } from '../../support/until.ts';

const { token, entry } = makeToken('write');
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
  const post = (path: string, json: object) =>
    askAdmin(admin.port, `/api/v1${path}`, { token, method: 'POST', json });
  const reloads = async () => {
    const { body } = await askAdmin(admin.port, '/api/v1/changes', { token });
    return body.changes.filter(({ action }: { action: string }) => action === 'reload').length;
  };
  const ask = (json: object) => post('/simulate', json);
  return {
    /** Reloads the configuration, and waits until the edit is on record with the time of the clock. */
    async reload(changed: Record<string, unknown>): Promise<void> {
      const before = await reloads();
      gateway.reload(await settings(changed));
      await until('the edit is on record', async () => (await reloads()) > before);
    },
    /** Sends requests in a minute, which is given by its number. Minute 0 begins at noon. `path` begins with `/v1`. */
    async send(secret: string, minute: number, requests: number, path = '/v1/nothing'): Promise<void> {
      nowMs = noon + minute * minuteMs;
      for (let sent = 0; sent < requests; sent++) {
        const headers = { authorization: `Bearer ${secret}` };
        await (await fetch(`http://127.0.0.1:${listen.port}${path}`, { headers })).arrayBuffer();
      }
    },
    async grant(id: string, limits: object, fromAt: string, untilAt: string): Promise<void> {
      const { status, text } = await post(`/keys/${id}/grant`, { limits, fromAt, untilAt });
      if (status !== 200) throw new Error(text);
    },
    simulate: async (json: object) => (await ask(json)).body,
    async refusal(json: object) {
      const { status, body } = await ask(json);
      return `${status} ${body.message}`;
    },
    ask,
  };
}

export const acme = makeKey({ id: 'acme', plan: 'free' });

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
