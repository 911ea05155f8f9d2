import { setTimeout as sleep } from 'node:timers/promises';
import { describe, expect, it } from 'vitest';
import { freePort } from '../../support/free-port.ts';
import { makeCertificate } from '../../support/make-certificate.ts';
import { until } from '../../support/until.ts';
import {
  accept,
  acceptWith,
  gigabyte,
  hang,
  type Respond,
  refuseWith,
  reset,
  startCollector,
} from './start-collector.ts';
import { startTraced } from './start-traced.ts';

/** Retries that end soon. */
const quick = { otelRetryMs: 20, otelRetryPauseMaxMs: 50 };
const all = { sample: '100 %' };

/** The line about lost spans. */
const isLoss = ({ msg }: Record<string, unknown>) => msg === 'spans did not reach the collector';

describe('a batch that the collector does not take', () => {
  it.each<[string, Respond]>([
    ['429', refuseWith(429)],
    ['502', refuseWith(502)],
    ['503', refuseWith(503)],
    ['504', refuseWith(504)],
    ['a reset', reset],
  ])('is repeated after %s', async (_what, respond) => {
    const { send, spans, collector } = await startTraced({ bounds: quick });
    collector.respond(respond);
    await send();
    await until('the gateway repeats it', () => collector.requests.length >= 3);
    collector.respond(accept);
    await spans(2);
    await sleep(100);
    expect(collector.spans()).toHaveLength(2);
  });

  it.each([400, 401, 404, 413, 500, 307])(
    'is dropped after the status %i, and the log says so',
    async (status) => {
      const { send, gateway, collector } = await startTraced({ bounds: quick });
      collector.respond(refuseWith(status, { location: 'http://127.0.0.1:1/' }));
      await send();
      const line = await gateway.line(isLoss);
      const reason = status === 307 ? 'status 307: no redirect is followed' : `status ${status}`;
      expect(line).toMatchObject({ level: 40, lost: 2, reasons: { [reason]: 2 } });
      expect(collector.requests).toHaveLength(1);
    },
  );

  it('waits as long as Retry-After says, up to a bound', async () => {
    const { send, spans, collector } = await startTraced({
      bounds: { ...quick, otelRetryAfterMaxMs: 1_000 },
    });
    collector.respond(refuseWith(503, { 'retry-after': '3600' }));
    await send();
    await until('the collector is busy', () => collector.requests.length === 1);
    collector.respond(accept);
    await spans(2);
    const [first, second] = collector.requests;
    expect((second?.atMs ?? 0) - (first?.atMs ?? 0)).toBeGreaterThan(900);
  });

  it('is dropped when its retries have taken too long', async () => {
    const { send, gateway, collector } = await startTraced({ bounds: { ...quick, otelRetriesMs: 200 } });
    collector.respond(refuseWith(503));
    await send();
    expect(await gateway.line(isLoss)).toMatchObject({ lost: 2, reasons: { 'status 503': 2 } });
  });

  it('is sent when a collector that was away at the start comes', async () => {
    const port = await freePort();
    const { send, gateway, collector } = await startTraced({
      otel: { ...all, url: `http://127.0.0.1:${port}` },
      bounds: quick,
    });
    expect((await send()).status).toBe(200);
    await sleep(200);
    const late = await startCollector({ port });
    await until('the spans arrive', () => late.spans().length === 2);
    await late.close();
    expect(gateway.lines.some(isLoss)).toBe(false);
    expect(collector.requests).toEqual([]);
  });
});

it('the spans that a collector rejects are counted, and not repeated', async () => {
  const { send, gateway, collector } = await startTraced({ bounds: quick });
  collector.respond(acceptWith('{"partialSuccess":{"rejectedSpans":"1","errorMessage":"too long"}}'));
  await send();
  expect(await gateway.line(isLoss)).toMatchObject({
    lost: 1,
    reasons: { 'the collector rejected them: too long': 1 },
  });
  await sleep(100);
  expect(collector.requests).toHaveLength(1);
});

it.each<[string, Respond]>([
  ['garbage', acceptWith('<html>')],
  ['JSON of another form', acceptWith('{"partialSuccess":[{"rejectedSpans":{}}]}')],
  ['impossible numbers', acceptWith('{"partialSuccess":{"rejectedSpans":"-1e99"}}')],
  ['an empty body', acceptWith('')],
  ['1 GB', gigabyte],
])('a response with %s is a success', async (_what, respond) => {
  const { send, gateway, spans, collector } = await startTraced({ bounds: quick });
  collector.respond(respond);
  await send();
  await spans(2);
  collector.respond(accept);
  await send();
  await spans(4);
  expect(gateway.lines.some(isLoss)).toBe(false);
});

it('a collector that hangs delays no request, and a POST ends after its timeout', async () => {
  const { send, spans, collector } = await startTraced({ bounds: { ...quick, otelTimeoutMs: 300 } });
  collector.respond(hang);
  for (let sent = 0; sent < 20; sent++) expect((await send()).status).toBe(200);
  await until('the POST is repeated', () => collector.requests.length >= 2);
  collector.respond(accept);
  await spans(40);
});

it('the queue is bounded in spans and in octets, and the log counts the rest at most once a minute', async () => {
  for (const bounds of [{ otelQueuedSpansMax: 10 }, { otelQueuedBytesMax: 10_000 }]) {
    const { send, gateway, collector } = await startTraced({ bounds: { ...bounds, otelBatchSpansMax: 4 } });
    collector.respond(hang);
    for (let sent = 0; sent < 50; sent++) await send();
    const lost = gateway.lines.filter(isLoss);
    expect(lost).toHaveLength(1);
    expect(lost[0]).toMatchObject({ reasons: { 'too many spans wait': 1 } });
    await gateway.stop('SIGINT');
    const total = gateway.lines
      .filter(isLoss)
      .map((line) => Number(line.lost))
      .reduce((sum, count) => sum + count);
    expect(total).toBe(100);
  }
});

it('a drain sends the last spans', async () => {
  const { send, gateway, collector } = await startTraced({ bounds: { otelBatchMs: 60_000 } });
  for (let sent = 0; sent < 30; sent++) await send();
  expect(collector.requests).toEqual([]);
  await gateway.stop('SIGINT');
  expect(collector.spans()).toHaveLength(60);
  expect(gateway.lines.some(isLoss)).toBe(false);
});

it('a drain beside a collector that hangs ends in its time, and the log counts the lost spans', async () => {
  const { send, gateway, collector } = await startTraced({
    bounds: { otelBatchMs: 60_000, otelCloseTimeoutMs: 300 },
  });
  collector.respond(hang);
  for (let sent = 0; sent < 5; sent++) await send();
  const begunMs = performance.now();
  await gateway.stop('SIGINT');
  expect(performance.now() - begunMs).toBeLessThan(10_000);
  expect(gateway.lines.filter(isLoss)).toMatchObject([{ lost: 10, reasons: { 'the gateway stopped': 10 } }]);
});

it('the spans of a collector that an edit removes are forgotten', async () => {
  const { send, edit, gateway, collector } = await startTraced({ bounds: { otelBatchMs: 60_000 } });
  await send();
  await edit(undefined);
  await edit({ ...all, url: collector.url });
  await gateway.stop('SIGINT');
  expect(collector.spans()).toEqual([]);
});

it('the header fields of a file and the authorities of a file reach a collector with TLS, and new ones need no restart', async () => {
  const [certificate, other] = [makeCertificate(), makeCertificate()];
  const collector = await startCollector({ tls: certificate });
  const { send, edit, spans, gateway } = await startTraced({
    collector,
    otel: { ...all, headersFile: 'fields', caFile: 'ca.pem' },
    files: {
      fields: '# token\nAuthorization: Bearer one\nX-Tenant: a=b\n',
      'ca.pem': other.cert,
      'good.pem': certificate.cert,
      next: 'authorization:Bearer two',
    },
    bounds: quick,
  });
  await send();
  await sleep(200);
  expect(collector.requests).toEqual([]);
  await edit({ ...all, headersFile: 'fields', caFile: 'good.pem' });
  await spans(2);
  expect(collector.requests[0]?.headers).toMatchObject({
    authorization: 'Bearer one',
    'x-tenant': 'a=b',
    'content-type': 'application/json',
  });
  await edit({ ...all, headersFile: 'next', caFile: 'good.pem' });
  await send();
  await spans(4);
  expect(collector.requests.at(-1)?.headers).toMatchObject({ authorization: 'Bearer two' });
  expect(gateway.output()).not.toContain('Bearer');
});
