import { onTestFinished } from 'vitest';
import { startGatewayHere } from '../../support/gateway-here.ts';
import { type GatewayStart, makeKey, testConfig } from '../../support/gateway-process.ts';
import { okResponse, type RecordedRequest, startRecordingBackend } from '../../support/recording-backend.ts';
import type { Tuning } from '../../support/tuning.ts';
import { until } from '../../support/until.ts';
import { type CollectedSpan, startCollector, type TestCollector } from './start-collector.ts';

/** Spans arrive soon, and a drain waits for its last spans. */
const soon: Tuning['bounds'] = { otelBatchMs: 20, drainDeadlineMs: 5_000, drainIdleGraceMs: 0 };

export const apiKey = makeKey({ id: 'acme', plan: 'pro' });
export const limitedKey = makeKey({ id: 'limited', plan: 'tiny' });

interface TracedOptions {
  /** Members of `otel`. */
  readonly otel?: Readonly<Record<string, unknown>>;
  readonly config?: Readonly<Record<string, unknown>>;
  readonly bounds?: Tuning['bounds'];
  readonly files?: GatewayStart['files'];
  readonly collector?: TestCollector;
}

/** Starts a gateway with a collector, and a backend that answers 200. */
export async function startTraced({
  otel = { sample: '100 %' },
  config = {},
  bounds,
  files,
  collector: given,
}: TracedOptions = {}) {
  const collector = given ?? (await startCollector());
  const backend = await startRecordingBackend();
  backend.react = (_request, socket) => socket.write(okResponse('[]'));
  const whole = (members: Readonly<Record<string, unknown>> | undefined) =>
    testConfig({
      upstream: { url: backend.url },
      plans: { pro: { perMinute: 100_000 }, tiny: { perMinute: 1 } },
      keys: [apiKey.entry, limitedKey.entry],
      ...(members && { otel: { url: collector.url, metrics: false, ...members } }),
      ...config,
    });
  const start = { tuning: { bounds: { ...soon, ...bounds } }, ...(files && { files }) };
  const gateway = await startGatewayHere(whole(otel), start);
  onTestFinished(async () => {
    await gateway.stop('SIGINT');
    await collector.close();
    await backend.close();
  });

  return {
    collector,
    backend,
    gateway,
    async send(
      path = '/pets',
      { headers = {}, secret = apiKey.secret, method = 'GET' }: SendOptions = {},
    ): Promise<Response> {
      const response = await fetch(`${gateway.baseUrl}${path}`, {
        method,
        headers: { authorization: `Bearer ${secret}`, ...headers },
      });
      await response.arrayBuffer();
      return response;
    },
    /** Replaces the members of `otel`; undefined removes it. */
    async edit(members: Readonly<Record<string, unknown>> | undefined): Promise<void> {
      const before = gateway.lines.length;
      await gateway.editConfig(whole(members));
      const isReload = ({ msg }: Record<string, unknown>) => msg === 'the configuration was reloaded';
      await until('the edit is in force', () => gateway.lines.slice(before).some(isReload));
    },
    /** Waits for spans, and returns all. */
    async spans(count: number): Promise<readonly CollectedSpan[]> {
      await until(`${count} spans arrive`, () => collector.spans().length >= count);
      return collector.spans();
    },
    /** The access lines so far. */
    lines: () =>
      gateway.lines.filter(({ requestId, status }) => requestId !== undefined && status !== undefined),
  };
}

interface SendOptions {
  readonly headers?: Readonly<Record<string, string>>;
  readonly secret?: string;
  readonly method?: string;
}

/** The value of a field that the backend got; undefined without it. */
export function fieldOf({ head }: RecordedRequest, name: string): string | undefined {
  const found = [...head.matchAll(new RegExp(`^${name}: *(.*)\\r$`, 'gim'))].map(([, value]) => value);
  if (found.length > 1) throw new Error(`the backend got ${name} ${found.length} times`);
  return found[0];
}
