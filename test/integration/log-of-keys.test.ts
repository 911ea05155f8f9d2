import { createHash } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { startGatewayHere } from '../support/gateway-here.ts';
import { makeKey, type RunningGateway, testConfig } from '../support/gateway-process.ts';
import { type StoreProcess, startStoreHere } from '../support/store-process.ts';

const before = makeKey({ id: 'acme' });
const after = makeKey();
const ended = makeKey();
const disabled = makeKey({ id: 'closed', disabled: true });
const flooding = makeKey({ id: 'flooding', plan: 'enterprise', limits: { perDay: 1 } });
const acme = {
  ...before.entry,
  secrets: [
    ...before.entry.secrets,
    ...after.entry.secrets,
    ...ended.entry.secrets.map((secret) => ({ ...secret, expires: '2020-01-01' })),
  ],
};

let store: StoreProcess;
let gateway: RunningGateway;

beforeAll(async () => {
  store = await startStoreHere();
  const upstream = { url: store.url, health: '/healthz' };
  const bans = { after: 3, within: '60s', for: '4s', max: '60s' };
  const keys = [acme, disabled.entry, flooding.entry];
  gateway = await startGatewayHere(testConfig({ upstream, keys, bans }));
});
afterAll(async () => {
  await gateway.stop();
  await store.stop();
});

/** Sends a request. @returns the response and its log line */
async function request(secret: string, fields: Record<string, string> = {}) {
  const response = await fetch(`${gateway.baseUrl}/pets`, {
    headers: { ...fields, Authorization: `Bearer ${secret}` },
  });
  const requestId = response.headers.get('x-request-id');
  const line = await gateway.line((entry) => entry.requestId === requestId && 'status' in entry);
  return { status: response.status, body: await response.text(), line };
}

function digestStart(secret: string): string {
  return createHash('sha256').update(secret).digest('hex').slice(0, 8);
}

describe('the log of a key', () => {
  it('has the secret of each request, so that an operator can see when a rotation is complete', async () => {
    for (const { secret } of [before, after, before]) {
      const { status, line } = await request(secret);
      expect(status).toBe(200);
      expect(line).toMatchObject({ keyId: 'acme', plan: 'free', secret: digestStart(secret) });
    }
  });

  it('has the reason why a secret was not valid, while the client gets the same response each time', async () => {
    const cases = [
      [ended.secret, { keyStatus: 'expired', keyId: 'acme' }],
      [disabled.secret, { keyStatus: 'disabled', keyId: 'closed' }],
      ['no secret of anybody', { keyStatus: 'unknown' }],
    ] as const;
    const responses = new Set<string>();
    for (const [secret, why] of cases) {
      const { status, body, line } = await request(secret);
      responses.add(`${status} ${body}`);
      expect(line).toMatchObject({ status: 401, error: 'invalid_key', ...why, secret: digestStart(secret) });
      expect('keyId' in line).toBe('keyId' in why);
      expect('plan' in line).toBe(false);
    }
    expect([...responses]).toEqual([expect.stringMatching(/^401 .*"invalid_key"/)]);
  });

  it('has only the first eight digits of a digest', () => {
    for (const { secret } of [before, after, ended, disabled]) {
      const digest = createHash('sha256').update(secret).digest('hex');
      expect(gateway.output()).toContain(digest.slice(0, 8));
      expect(gateway.output()).not.toContain(digest.slice(0, 9));
    }
  });

  it('has one line when a key is banned, with the end of the ban, and one when the ban is over', async () => {
    const headers = { Authorization: `Bearer ${flooding.secret}` };
    const statuses: number[] = [];
    let isBanned = false;
    // The loop ends with the ban. A request that arrives after the end of the ban could begin another ban.
    while (!isBanned) {
      const response = await fetch(`${gateway.baseUrl}/pets`, { headers });
      statuses.push(response.status);
      isBanned = (await response.text()).includes('"key_banned"');
    }
    expect(new Set(statuses)).toEqual(new Set([200, 429]));
    const ended = await gateway.line(({ msg }) => msg === 'a key is no longer banned');
    const [began, ...more] = gateway.lines.filter(({ msg }) => msg === 'a key is banned');
    expect(more).toEqual([]);
    const whose = { level: 40, keyId: 'flooding', plan: 'enterprise' };
    expect(began).toMatchObject({ ...whose, banLevel: 1 });
    expect(ended).toMatchObject({ ...whose, ended: 'expired' });
    const [beganMs, untilMs, endedMs] = [began?.time, began?.until, ended.time].map((at) =>
      Date.parse(`${at}`),
    );
    // The gateway writes the access line right after the decision.
    expect((untilMs ?? Number.NaN) - (beganMs ?? Number.NaN)).toBeLessThanOrEqual(4_000);
    expect(untilMs).toBeGreaterThan(beganMs ?? Number.NaN);
    expect(endedMs).toBeGreaterThanOrEqual(untilMs ?? Number.NaN);
  });

  it('has the trace id of a request', async () => {
    const traceparent = '00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01';
    const { line } = await request(after.secret, { traceparent });
    expect(line).toMatchObject({ traceId: '4bf92f3577b34da6a3ce929d0e0e4736' });
  });
});
