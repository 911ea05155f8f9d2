import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest';
import { faultsOf, instantsOutOfPlace } from '../../support/described-replies.ts';
import { freshPrefix, redisUrl } from '../../support/redis.ts';
import { settingsOf } from '../../support/settings-of.ts';
import { startDeliveries, startWithTokens, webhookSecret } from './start-deliveries.ts';
import { startWebhookReceiver } from './webhook-receiver.ts';

const waitMs = { timeout: 120_000 };

interface Delivery {
  readonly receiver: string;
  readonly state: string;
  readonly url: string;
  readonly last?: { readonly status?: number; readonly error?: string };
}

interface Event {
  readonly id: string;
  readonly type: string;
  readonly subject?: string;
  readonly deliveries: readonly Delivery[];
}

describe('the deliveries of a gateway', () => {
  let started: Awaited<ReturnType<typeof startDeliveries>>;
  beforeAll(async () => {
    started = await startDeliveries();
  });
  afterAll(() => started.close());

  const ask = (...request: Parameters<typeof started.ask>) => started.ask(...request);
  const list = async (query: string): Promise<readonly Event[]> =>
    (await ask(`/deliveries${query}`)).body.events;
  const first = async (query: string): Promise<Event> => {
    const [event] = await list(query);
    if (event === undefined) throw new Error(`no event: ${query}`);
    return event;
  };

  it('are listed with the newest event first, with the answer of each receiver, and without the path of a URL', async () => {
    const reply = await ask('/deliveries');
    expect([faultsOf(reply, 'GET', '/deliveries'), instantsOutOfPlace(reply.body)]).toEqual([[], []]);
    const { body, text } = reply;
    const events: readonly Event[] = body.events;
    expect(events.map(({ type, subject }) => [type, subject])).toEqual([
      ['config.rejected', 'config'],
      ['key.revoked', 'key acme'],
      ['key.created', 'key globex'],
      ['key.created', 'key acme'],
    ]);
    const [origin, refused] = [started.accepting, started.refusing].map(
      ({ url }) => `${new URL(url).origin}/***`,
    );
    expect(events.at(-1)?.deliveries).toEqual([
      expect.objectContaining({
        url: origin,
        isConfigured: true,
        state: 'delivered',
        attempts: 1,
        last: { at: expect.any(String), status: 204 },
      }),
      expect.objectContaining({
        url: refused,
        state: 'waiting',
        last: { at: expect.any(String), status: 500, error: expect.stringContaining('500') },
      }),
    ]);
    expect(body.problems).toEqual([
      expect.objectContaining({ url: refused, failed: 0, last: expect.objectContaining({ status: 500 }) }),
    ]);
    expect(body.receivers.map(({ url }: { url: string }) => url)).toEqual([origin, refused]);
    expect(text).not.toContain('a-token-in-the-path');
    expect(text).not.toContain(webhookSecret);
  });

  it('are filtered by state, type, subject, receiver and period', async () => {
    const id = started.settings.notify[1]?.id ?? '';
    const [newest] = await list('?limit=1');
    const idsOf = async (query: string) =>
      (await list(query)).map(({ type, subject }) => `${type} ${subject}`);
    const both = ['key.created key globex', 'key.created key acme'];
    expect(await idsOf('?state=waiting')).toEqual(both);
    expect(await idsOf('?state=failed')).toEqual([]);
    expect(await idsOf('?type=key.revoked,config.rejected')).toEqual([
      'config.rejected config',
      'key.revoked key acme',
    ]);
    expect(await idsOf('?subject=key+acme')).toEqual(['key.revoked key acme', 'key.created key acme']);
    expect(await idsOf(`?receiver=${id}`)).toEqual(both);
    expect(await idsOf('?to=2020-01-01')).toEqual([]);
    expect(await idsOf('?from=2020-01-01')).toHaveLength(4);
    expect(
      (await list(`?receiver=${id}`)).flatMap(({ deliveries }) => deliveries.map((one) => one.receiver)),
    ).toEqual([id, id]);
    expect(newest?.type).toBe('config.rejected');
    for (const wrong of ['?state=lost', '?type=key', '?after=x', '?limit=0', '?from=yesterday']) {
      expect([wrong, (await ask(`/deliveries${wrong}`)).status]).toEqual([wrong, 400]);
    }
  });

  it('have pages, and each event is on one page', async () => {
    const ids: string[] = [];
    let after = '';
    do {
      const { events, next } = (await ask(`/deliveries?limit=1${after}`)).body;
      ids.push(...events.map((event: Event) => event.id));
      after = next === undefined ? '' : `&after=${next}`;
    } while (after !== '');
    expect(ids).toEqual((await list('')).map(({ id }) => id));
  });

  it('of one event are shown with the body exactly as the receivers get it', async () => {
    const { id } = await first('?type=key.revoked');
    const reply = await ask(`/deliveries/${id}`);
    expect([faultsOf(reply, 'GET', '/deliveries/{id}'), instantsOutOfPlace(reply.body)]).toEqual([[], []]);
    const { body } = reply;
    expect(started.accepting.bodies).toContain(body.body);
    expect(JSON.parse(body.body)).toMatchObject({ type: 'key.revoked', data: { key: 'acme' } });
    expect(body.deliveries).toMatchObject([{ state: 'delivered', last: { status: 204 } }]);
  });

  it('send an event again with the same id, on the request of a token that may write', async () => {
    const { id } = await first('?type=config.rejected');
    const path = `/deliveries/${id}/send`;
    const refused = await ask(path, { method: 'POST', json: {}, token: started.reader.token });
    const sent = await ask(path, { method: 'POST', json: {} });
    expect([refused.status, sent.body]).toEqual([403, { due: 1 }]);
    for (const reply of [refused, sent]) expect(faultsOf(reply, 'POST', '/deliveries/{id}/send')).toEqual([]);
    const received = () => started.accepting.received.filter((event) => event.id === id).length;
    await expect.poll(received, waitMs).toBe(2);
    const state = async () => (await ask(`/deliveries/${id}`)).body.deliveries[0].state;
    await expect.poll(state, waitMs).toBe('delivered');
    expect(started.logged).toContainEqual(expect.objectContaining({ by: 'alice', eventId: id }));
  });

  it('send an event again to one receiver, which has been repaired', async () => {
    const { id } = await first('?subject=key+acme&type=key.created');
    const { accepting, refusing, settings } = started;
    const [before, other] = [accepting.received.length, settings.notify[1]?.id];
    refusing.status = 204;
    const sent = await ask(`/deliveries/${id}/send`, { method: 'POST', json: { receiver: other } });
    expect(sent.body).toEqual({ due: 1 });
    await expect.poll(() => refusing.received.some((event) => event.id === id), waitMs).toBe(true);
    const waiting = async () => (await ask('/deliveries')).body.counts.waiting;
    await expect.poll(waiting, waitMs).toBe(0);
    expect((await ask('/deliveries')).body.problems).toEqual([]);
    expect(accepting.received.length).toBe(before);
  });

  it('refuse an unknown event, and a receiver that the event or the configuration does not have', async () => {
    const { id } = await first('?type=config.rejected');
    const send = (path: string, json: unknown) => ask(`/deliveries/${path}/send`, { method: 'POST', json });
    expect((await ask('/deliveries/evt_none')).status).toBe(404);
    expect((await ask(`/deliveries/${'x'.repeat(500)}`)).status).toBe(404);
    expect((await send('evt_none', {})).status).toBe(404);
    expect((await send(id, { receiver: started.settings.notify[1]?.id })).status).toBe(404);
    expect((await send(id, { receiver: 'none' })).status).toBe(400);
    const { gateway, settings } = started;
    gateway.reload({ ...settings, notify: settings.notify.slice(1) });
    onTestFinished(() => gateway.reload(settings));
    expect((await send(id, {})).status).toBe(409);
    expect((await ask(`/deliveries/${id}`)).body.deliveries).toMatchObject([{ isConfigured: false }]);
  });
});

it('the deliveries get 503 while Redis is away', async () => {
  const { gateway, ask } = await startWithTokens(
    { redis: { url: 'redis://127.0.0.1:1', prefix: freshPrefix() } },
    { storeStartTimeoutMs: 100 },
  );
  onTestFinished(() => gateway.drain({ graceMs: 0 }));
  const replies = [
    await ask('/deliveries'),
    await ask('/deliveries/evt_none'),
    await ask('/deliveries/evt_none/send', { method: 'POST', json: {} }),
  ];
  expect(replies.map(({ status, body }) => [status, body.code])).toEqual(
    replies.map(() => [503, 'store_unavailable']),
  );
});

it('an edit that adds Redis and a receiver is in force, and the receiver gets events from the next start on', async () => {
  const receiver = await startWebhookReceiver(webhookSecret);
  onTestFinished(() => receiver.close());
  const edit = {
    upstream: { url: 'http://127.0.0.1:1' },
    keys: [],
    redis: { url: redisUrl(), prefix: freshPrefix() },
    notify: [{ url: receiver.url, secretFile: 'hook', events: ['config.rejected'] }],
  };
  const before = await startWithTokens({ keys: [], redis: undefined });
  onTestFinished(() => before.gateway.drain({ graceMs: 0 }));
  const { redis, notify } = await settingsOf(edit, { hook: webhookSecret });
  before.gateway.reload({ ...before.settings, redis, notify });
  before.gateway.reportFailedReload('gateway.yaml:1:1: not valid', '0123456789ab');
  await expect
    .poll(async () => (await before.ask('/changes')).body.changes)
    .toContainEqual(expect.objectContaining({ action: 'reload_failed' }));
  expect((await before.ask('/deliveries')).body).toMatchObject({ events: [], counts: { events: 0 } });

  const restarted = await startWithTokens(edit);
  onTestFinished(() => restarted.gateway.drain({ graceMs: 0 }));
  restarted.gateway.reportFailedReload('gateway.yaml:1:1: not valid', '0123456789ac');
  await expect.poll(() => receiver.received.length, waitMs).toBe(1);
  expect((await restarted.ask('/deliveries')).body.counts.events).toBe(1);
});
