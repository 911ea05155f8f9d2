import { describe, expect, it, onTestFinished } from 'vitest';
import { otlpMetrics } from '../../../gateway/capabilities/otel/metrics/otlp-metrics.ts';
import { makeKey, startGateway, testConfig } from '../../support/gateway-process.ts';
import { readMetrics } from '../../support/read-metrics.ts';
import { okResponse, startRecordingBackend } from '../../support/recording-backend.ts';
import { freshPrefix, redisUrl } from '../../support/redis.ts';
import { patientGateway } from '../../support/tuning.ts';
import { until } from '../../support/until.ts';
import { attributesIn, type CollectedMetric, refuseWith, startCollector } from './start-collector.ts';
import { startTraced } from './start-traced.ts';

const seldom = { otelMetricsIntervalMs: 60_000 };
const often = { otelMetricsIntervalMs: 100 };

/** The values of a metric by its attributes, as `/metrics` writes them. */
function valuesOf(metrics: readonly CollectedMetric[], name: string): Record<string, number> {
  const metric = metrics.findLast((one) => one.name === name);
  const points = (metric?.sum ?? metric?.gauge)?.dataPoints ?? [];
  return Object.fromEntries(
    points.map(({ attributes, asDouble = 0 }) => {
      const labels = Object.entries(attributesIn(attributes)).map(([label, value]) => `${label}="${value}"`);
      return [labels.join(','), asDouble];
    }),
  );
}

it('the metrics are those of /metrics, with the same names, and no attribute is a key', async () => {
  const { send, gateway, collector } = await startTraced({
    otel: { metrics: true, sample: '0 %' },
    bounds: often,
  });
  await send();
  await send('/nothing');
  const total = () =>
    Object.values(valuesOf(collector.metrics(), 'tollgate_requests_total')).reduce(
      (sum, value) => sum + value,
      0,
    );
  await until('the counts arrive', () => total() === 2);
  const metrics = collector.metrics();
  expect(valuesOf(metrics, 'tollgate_requests_total')).toEqual({
    'operation="listPets",status="200",decision="admitted"': 1,
    'operation="",status="404",decision="admitted"': 1,
  });
  const requests = metrics.findLast(({ name }) => name === 'tollgate_requests_total');
  expect(requests).toMatchObject({
    sum: { aggregationTemporality: 2, isMonotonic: true },
    resource: { 'service.name': 'tollgate', 'deployment.environment.name': 'test' },
  });
  const { text } = await readMetrics(gateway.adminUrl);
  const named = [...text.matchAll(/^# TYPE (\S+) /gm)].map(([, name = '']) => name);
  const withValues = named.filter((name) => new RegExp(`^${name}(_count)?[ {]`, 'm').test(text));
  await until('all metrics of /metrics arrive', () => {
    const sent = new Set(collector.metrics().map(({ name }) => name));
    return withValues.every((name) => sent.has(name));
  });
  expect(JSON.stringify(metrics)).not.toContain('acme');
});

it('a histogram has the count of each bucket alone', async () => {
  const { send, gateway, collector } = await startTraced({
    otel: { metrics: true, sample: '0 %' },
    bounds: seldom,
  });
  for (let sent = 0; sent < 10; sent++) await send();
  await gateway.stop('SIGINT');
  const histogram = collector.metrics().find(({ name }) => name === 'tollgate_request_duration_seconds');
  const [point] = histogram?.histogram?.dataPoints ?? [];
  expect(histogram).toMatchObject({ unit: 's', histogram: { aggregationTemporality: 2 } });
  const counts = point?.bucketCounts?.map(Number) ?? [];
  expect(counts.reduce((sum, count) => sum + count, 0)).toBe(10);
  expect(point?.count).toBe('10');
  expect(counts.length).toBe((point?.explicitBounds?.length ?? 0) + 1);
  expect(Number(point?.timeUnixNano)).toBeGreaterThan(Number(point?.startTimeUnixNano));
});

it('a collector that refuses metrics gets the whole counts later, and the log says so once a minute', async () => {
  const { send, gateway, collector } = await startTraced({
    otel: { metrics: true, sample: '0 %' },
    bounds: often,
  });
  collector.respond(refuseWith(503));
  await send();
  await until('some POSTs fail', () => collector.requests.length >= 5);
  const lost = gateway.lines.filter(({ msg }) => msg === 'metrics did not reach the collector');
  expect(lost).toMatchObject([{ level: 40, reasons: { 'status 503': expect.any(Number) } }]);
  await gateway.stop('SIGINT');
});

it('with workers, the supervisor sends the sums of all workers, and each worker sends its spans', async () => {
  const [backend, collector] = await Promise.all([
    startRecordingBackend({ react: (_request, socket) => socket.write(okResponse('[]')) }),
    startCollector(),
  ]);
  const { entry, secret } = makeKey({ id: 'acme', plan: 'business' });
  const gateway = await startGateway(
    testConfig({
      upstream: { url: backend.url },
      workers: 2,
      redis: { url: redisUrl(), prefix: freshPrefix() },
      keys: [entry],
      otel: { url: collector.url, sample: '100 %' },
    }),
    {
      tuning: {
        bounds: {
          ...patientGateway,
          ...often,
          otelBatchMs: 50,
          workerReportIntervalMs: 100,
          otelCloseTimeoutMs: 20_000,
        },
      },
    },
  );
  onTestFinished(async () => {
    await gateway.stop('SIGKILL');
    await Promise.all([collector.close(), backend.close()]);
  });
  for (let sent = 0; sent < 40; sent++) {
    const headers = { authorization: `Bearer ${secret}`, connection: 'close' };
    await (await fetch(`${gateway.baseUrl}/pets`, { headers })).arrayBuffer();
  }
  const requests = () =>
    valuesOf(collector.metrics(), 'tollgate_requests_total')[
      'operation="listPets",status="200",decision="admitted"'
    ];
  await until('the sums arrive', () => requests() === 40);
  await until('all spans arrive', () => collector.spans().length === 80);
  const senders = (found: readonly { readonly resource: Record<string, unknown> }[]) =>
    new Set(found.map(({ resource }) => resource['service.instance.id']));
  expect(senders(collector.metrics()).size).toBe(1);
  expect(senders(collector.spans()).size).toBe(2);
  await until('/metrics has the spans of both workers', async () => {
    const { figures } = await readMetrics(gateway.adminUrl);
    return figures.get('tollgate_otel_spans_total{result="sent"}') === 80;
  });
  await gateway.stop('SIGINT');
});

describe('the conversion', () => {
  it('leaves out values that JSON does not know, and metrics without values', () => {
    const gauge = (name: string, ...values: number[]) => ({
      name,
      help: 'h',
      type: 'gauge' as const,
      values: values.map((value) => ({ labels: {}, value })),
    });
    const made = otlpMetrics([gauge('a', Number.NaN, 1), gauge('b')], { startMs: 1, nowMs: 2 });
    expect(made).toEqual([
      {
        name: 'a',
        description: 'h',
        unit: '',
        gauge: {
          dataPoints: [
            { attributes: [], startTimeUnixNano: '1000000', timeUnixNano: '2000000', asDouble: 1 },
          ],
        },
      },
    ]);
  });
});
