import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { originOf, readiness } from '../support/fleet.ts';
import { makeCustomKey, startGateway, testConfig } from '../support/gateway-process.ts';
import { countStatuses, type LoadResponse, startLoad } from '../support/load.ts';
import { okResponse, type RecordingBackend, startRecordingBackend } from '../support/recording-backend.ts';
import { startRedis } from '../support/start-redis.ts';
import { until } from '../support/until.ts';

export type TargetFault = 'one dies' | 'one hangs' | 'one flaps' | 'all gone';

export interface TargetFaults {
  /** The health checks that each target received per second before the fault; undefined for a single process. */
  readonly checksPerSecond: number | undefined;
  readonly statuses: Record<number, number>;
  /** The errors of requests without a complete response. */
  readonly failures: readonly string[];
  /** The number of POSTs that the targets received more than once. */
  readonly duplicated: number;
  /** The number of 503 responses without Retry-After. */
  readonly badRefusals: number;
  /** The time from the fault to the last error response. If a target flaps, the time starts at its last fault. */
  readonly lastErrorAfterMs: number;
  /** The time from the fault to the start of the last request that got an error response. */
  readonly lastFailedBeganAfterMs: number;
  /** The time from the fault to the last request that the hanging target received; undefined if no target hangs. */
  readonly lastHungAfterMs: number | undefined;
  /** The statuses of requests that were sent after the end of the fault. */
  readonly afterwards: Record<number, number>;
  readonly running: boolean;
}

const hosts = ['127.0.0.2', '127.0.0.3', '127.0.0.4'];
const response201 = okResponse('{"id":1}', 201);

/**
 * Sends POSTs under load through one or several processes to three targets of one host name. One or all of the targets fail and recover. A hanging
 * target holds each request for `totalTimeoutMs`. When the hanging target has ended its requests, it has the fewest requests in flight. The
 * gateway therefore chooses the hanging target again, unless the health checks of this target have failed.
 */
export async function measureTargetFault(
  fault: TargetFault,
  { totalTimeoutMs, processes = 1 }: { readonly totalTimeoutMs: number; readonly processes?: number },
): Promise<TargetFaults> {
  const key = makeCustomKey(1_000_000_000, 1_000_000_000);
  const folder = await mkdtemp(join(tmpdir(), 'tollgate-hosts-'));
  const hostsFile = join(folder, 'hosts');
  await writeFile(hostsFile, hosts.join('\n'));
  const backends = new Map<string, RecordingBackend>();
  const all: RecordingBackend[] = [];
  let port = 0;

  async function open(host: string): Promise<void> {
    const backend = await startRecordingBackend({
      host,
      port,
      react: (_request, socket) => void sleep(2).then(() => socket.write(response201)),
    });
    port = backend.port;
    backends.set(host, backend);
    all.push(backend);
  }
  for (const host of hosts) await open(host);

  const redis = processes > 1 ? await startRedis() : undefined;
  const start = () =>
    startGateway(
      testConfig({
        upstream: { url: `http://targets.test:${port}`, health: '/healthz' },
        keys: [key.entry],
        ...(redis && { redis: { url: redis.url, prefix: 'targets' } }),
      }),
      { tuning: { hostsFile, bounds: { upstreamTotalTimeoutMs: totalTimeoutMs, sweepIntervalMs: 20 } } },
    );
  const gateways = await Promise.all(Array.from({ length: processes }, start));
  let posts = 0;
  const post = { origins: gateways.map(originOf), secrets: [key.secret], path: '/v1/pets' };
  const postBody = () => `{"name":"post-${posts++}","categoryId":1}`;
  const load = startLoad({ ...post, clients: 12, pauseMs: 2, postBody });
  try {
    await until('targets are in use', () => all.every(({ requests }) => requests.length > 10));
    const checksPerSecond = processes > 1 ? await measureChecks(all) : undefined;
    let faultAtMs = 0;
    let lastHungMs: number | undefined;
    await cause(fault, {
      backends,
      open,
      onFault() {
        faultAtMs = performance.now();
      },
      onHung() {
        lastHungMs = performance.now();
      },
    });
    await until('all targets are healthy again for all processes', async () => {
      const bodies = await Promise.all(gateways.map(async (gateway) => (await readiness(gateway)).body));
      const seen = bodies.flatMap(({ upstreams }) => upstreams.default?.targets ?? []);
      return seen.length === hosts.length * processes && seen.every(({ healthy }) => healthy);
    });
    const { responses, failures } = await load.stop();
    const afterwards = await startLoad({ ...post, clients: 4, requestsMax: 60, postBody }).done;
    const errors = responses.filter(({ status }) => status !== 201);
    const sinceFaultMs = (times: readonly number[]) => Math.max(faultAtMs, ...times) - faultAtMs;
    const received = all.flatMap(({ requests }) => requests.map(({ rawBody }) => nameIn(rawBody)));
    return {
      checksPerSecond,
      statuses: countStatuses(responses),
      failures,
      duplicated: received.length - new Set(received).size,
      badRefusals: responses.filter(isBadRefusal).length,
      lastErrorAfterMs: sinceFaultMs(errors.map(({ atMs }) => atMs)),
      lastFailedBeganAfterMs: sinceFaultMs(errors.map(({ atMs, tookMs }) => atMs - tookMs)),
      lastHungAfterMs: lastHungMs === undefined ? undefined : sinceFaultMs([lastHungMs]),
      afterwards: countStatuses(afterwards.responses),
      running: gateways.every(({ child }) => child.exitCode === null),
    };
  } finally {
    await load.stop();
    await Promise.all(gateways.map((gateway) => gateway.stop('SIGKILL')));
    await redis?.stop();
    await Promise.all([...backends.values()].map((backend) => backend.close()));
    await rm(folder, { recursive: true, force: true });
  }
}

/** The average number of health checks per second and target. Processes count each other in the first seconds. */
async function measureChecks(backends: readonly RecordingBackend[]): Promise<number> {
  await sleep(2_000);
  const sum = () => backends.reduce((total, { healthChecks }) => total + healthChecks, 0);
  const [before, startMs] = [sum(), performance.now()];
  await sleep(3_000);
  return ((sum() - before) * 1_000) / (performance.now() - startMs) / backends.length;
}

interface Causing {
  readonly backends: Map<string, RecordingBackend>;
  readonly open: (host: string) => Promise<void>;
  /** Called at the beginning of each fault. */
  readonly onFault: () => void;
  /** Called for each request that a hanging target receives. */
  readonly onHung: () => void;
}

async function cause(fault: TargetFault, { backends, open, onFault, onHung }: Causing): Promise<void> {
  const [first = ''] = hosts;
  switch (fault) {
    case 'one dies':
      onFault();
      await backends.get(first)?.close();
      await sleep(1_500);
      return open(first);
    case 'one flaps':
      for (let times = 0; times < 3; times += 1) {
        onFault();
        await backends.get(first)?.close();
        await sleep(250);
        await open(first);
        await sleep(250);
      }
      return;
    case 'one hangs': {
      const backend = backends.get(first);
      if (backend === undefined) return;
      const { react } = backend;
      onFault();
      backend.react = onHung;
      backend.health = undefined;
      await sleep(3_000);
      backend.react = react;
      backend.health = 200;
      return;
    }
    case 'all gone':
      onFault();
      await Promise.all([...backends.values()].map((backend) => backend.close()));
      await sleep(1_500);
      for (const host of hosts) await open(host);
      return;
  }
}

function isBadRefusal({ status, headers }: LoadResponse): boolean {
  return status === 503 && headers['retry-after'] === undefined;
}

function nameIn(body: string): string {
  return /post-\d+/.exec(body)?.[0] ?? body;
}
