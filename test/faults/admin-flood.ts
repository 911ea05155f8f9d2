import { originOf } from '../support/fleet.ts';
import { makeCustomKey, startGateway, testConfig } from '../support/gateway-process.ts';
import { countStatuses, quantile, startLoad } from '../support/load.ts';
import { okResponse, startRecordingBackend } from '../support/recording-backend.ts';

export interface AdminFlood {
  /** Responses to the key, before and during the flood, by status. */
  readonly good: Record<number, number>;
  readonly failures: readonly string[];
  /** Times of the key's requests. */
  readonly p50Ms: { readonly baseline: number; readonly beside: number };
  readonly flood: { readonly perSecond: number; readonly statuses: Record<number, number> };
  /** The time in which an operator at the flood's address gets `/readyz` on a new connection. */
  readonly operatorMs: number;
}

/**
 * Measures a key beside clients without a token, which request a path of the admin listener again after each response.
 */
export async function measureAdminFlood(options: {
  readonly path: string;
  readonly clients: number;
  readonly goodRequests: number;
}): Promise<AdminFlood> {
  const { path, clients, goodRequests } = options;
  const key = makeCustomKey(1_000_000_000, 1_000_000_000);
  const backend = await startRecordingBackend({
    react: (_request, socket) => {
      backend.requests.length = 0;
      socket.write(okResponse('[]'));
    },
  });
  const gateway = await startGateway(
    testConfig({ upstream: { url: backend.url, health: '/healthz' }, keys: [key.entry] }),
  );
  const goodLoad = () =>
    startLoad({
      origins: [originOf(gateway)],
      secrets: [key.secret],
      clients: 8,
      requestsMax: goodRequests,
      pauseMs: 4,
    }).done;
  try {
    await goodLoad();
    const baseline = await goodLoad();
    const beganMs = performance.now();
    const flood = startLoad({ origins: [gateway.adminUrl], secrets: ['none'], clients, path });
    const goodDuring = goodLoad();
    const askedMs = performance.now();
    await (await fetch(`${gateway.adminUrl}/readyz`)).text();
    const operatorMs = performance.now() - askedMs;
    const beside = await goodDuring;
    const { responses, failures } = await flood.stop();
    return {
      good: countStatuses([...baseline.responses, ...beside.responses]),
      failures: [...baseline.failures, ...beside.failures, ...failures],
      p50Ms: { baseline: quantile(baseline.responses, 0.5), beside: quantile(beside.responses, 0.5) },
      flood: {
        perSecond: (1_000 * responses.length) / (performance.now() - beganMs),
        statuses: countStatuses(responses),
      },
      operatorMs,
    };
  } finally {
    await gateway.stop('SIGKILL');
    await backend.close();
  }
}
