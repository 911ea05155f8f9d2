import { setTimeout as sleep } from 'node:timers/promises';
import { startFleet } from '../support/fleet.ts';
import { makeCustomKey } from '../support/gateway-process.ts';
import { startLoad } from '../support/load.ts';
import { openDescriptors, residentBytes } from '../support/process-figures.ts';
import { until } from '../support/until.ts';

export interface Soak {
  readonly requests: number;
  readonly failures: readonly string[];
  /** The growth of resident memory over the second half, by least squares. */
  readonly slopeBytesPerSecond: number;
  readonly residentBytes: { readonly middle: number; readonly end: number };
  /** The number of open descriptors before the first client connected, and after the last client disconnected. */
  readonly descriptors: { readonly before: number; readonly after: number };
}

/**
 * Clients connect, send requests and disconnect. Some keys are refused or banned, some requests have an unknown key, and some requests have
 * an unknown path.
 */
export async function measureSoak({ seconds }: { readonly seconds: number }): Promise<Soak> {
  const roomy = makeCustomKey(1_000_000_000, 1_000_000_000);
  const tight = makeCustomKey(10, 1_000);
  const fleet = await startFleet({ starts: [{}], config: { keys: [roomy.entry, tight.entry] } });
  const pid = fleet.gateways[0]?.child.pid ?? 0;
  const secrets = [roomy.secret, roomy.secret, tight.secret, 'unknown'];
  const { origins } = fleet;
  try {
    await sleep(500);
    const before = openDescriptors(pid);
    const samples: { atSeconds: number; bytes: number }[] = [];
    const startedMs = performance.now();
    let requests = 0;
    const failures: string[] = [];
    while (performance.now() - startedMs < seconds * 1000) {
      const loads = [
        startLoad({ origins, secrets, clients: 6 }),
        startLoad({ origins, secrets, clients: 2, path: '/v1/nowhere' }),
        startLoad({ origins, secrets, clients: 2, path: '/v1/pets', postBody: () => '{"name":"Rex"}' }),
      ];
      await sleep(1_000);
      for (const load of loads) {
        const outcome = await load.stop();
        requests += outcome.responses.length;
        failures.push(...outcome.failures);
      }
      // The log lines that `startGateway` keeps are not needed here, and would fill the memory.
      fleet.gateways[0]?.lines.splice(0);
      samples.push({ atSeconds: (performance.now() - startedMs) / 1000, bytes: residentBytes(pid) });
    }
    let after = openDescriptors(pid);
    await until('descriptors are as before', () => {
      after = openDescriptors(pid);
      return after <= before + descriptorsOfUpstream;
    });
    const half = samples.slice(Math.floor(samples.length / 2));
    return {
      requests,
      failures,
      slopeBytesPerSecond: slope(half),
      residentBytes: { middle: half[0]?.bytes ?? 0, end: half.at(-1)?.bytes ?? 0 },
      descriptors: { before, after },
    };
  } finally {
    await fleet.stop();
  }
}

/** The idle connections to the upstream, at most one for each of the ten clients. */
const descriptorsOfUpstream = 10;

function slope(samples: readonly { readonly atSeconds: number; readonly bytes: number }[]): number {
  const mean = (of: (sample: { atSeconds: number; bytes: number }) => number) =>
    samples.reduce((sum, sample) => sum + of(sample), 0) / samples.length;
  const x = mean(({ atSeconds }) => atSeconds);
  const y = mean(({ bytes }) => bytes);
  const covariance = mean(({ atSeconds, bytes }) => (atSeconds - x) * (bytes - y));
  const variance = mean(({ atSeconds }) => (atSeconds - x) ** 2);
  return variance === 0 ? 0 : covariance / variance;
}
