import { makeToken } from '../support/admin-client.ts';
import { originOf } from '../support/fleet.ts';
import { makeCustomKey, startGateway, testConfig } from '../support/gateway-process.ts';
import { countStatuses, startLoad } from '../support/load.ts';
import { readMetrics } from '../support/read-metrics.ts';
import { okResponse, startRecordingBackend } from '../support/recording-backend.ts';
import { startRedis } from '../support/start-redis.ts';
import { patientStore } from '../support/tuning.ts';
import { until } from '../support/until.ts';
import { killWorker, workersOf } from '../support/workers-of.ts';

export interface WorkerKills {
  readonly responses: number;
  readonly statuses: Record<number, number>;
  /** The errors of requests without a complete response. */
  readonly failures: readonly string[];
  /** The number of connections of the killed workers. When a worker dies, one request on each of its connections may fail. */
  readonly connectionsKilled: number;
  /** The largest decrease of the count of all requests, which must never decrease. */
  readonly wentBack: number;
  /**
   * The requests that are missing in the final count, because the killed workers had not reported them.
   */
  readonly untold: number;
}

const clients = 40;

/** Kills workers one after the other while clients on persistent connections send requests. */
export async function measureWorkerKills({
  workers,
  kills,
}: {
  readonly workers: number;
  readonly kills: number;
}): Promise<WorkerKills> {
  const key = makeCustomKey(1_000_000_000, 1_000_000_000);
  const token = makeToken();
  const [backend, redis] = await Promise.all([
    startRecordingBackend({ react: (_request, socket) => socket.write(okResponse('[]')) }),
    startRedis(),
  ]);
  const config = testConfig({
    upstream: { url: backend.url, health: '/healthz' },
    workers,
    redis: { url: redis.url, prefix: 'test' },
    admin: { host: '127.0.0.1', port: 0, tokens: [token.entry] },
    keys: [key.entry],
  });
  const gateway = await startGateway(config, {
    tuning: { bounds: { ...patientStore, workerReportIntervalMs: 100 } },
  });
  const load = startLoad({ origins: [originOf(gateway)], secrets: [key.secret], clients });
  const counted = async () => (await readMetrics(gateway.adminUrl)).sum('tollgate_requests_total');
  let connectionsKilled = 0;
  let [highest, wentBack] = [0, 0];
  try {
    for (let kill = 0; kill < kills; kill++) {
      const enough = load.responses.length + 10 * clients;
      await until('all clients are served', () => load.responses.length > enough);
      await until('the workers have reported their connections', async () => {
        const told = (await workersOf(gateway, token.token)).map(({ connections }) => connections);
        return told.reduce((sum, connections) => sum + connections, 0) >= clients;
      });
      const victim = (await workersOf(gateway, token.token))[kill % workers];
      if (victim === undefined) throw new Error('a worker is missing');
      connectionsKilled += victim.connections;
      await killWorker(gateway, victim.pid, token.token);
      const now = await counted();
      wentBack = Math.max(wentBack, highest - now);
      highest = Math.max(highest, now);
    }
    const { responses, failures } = await load.stop();
    let atEnd = 0;
    await until('the number of counted requests no longer changes', async () => {
      const before = atEnd;
      atEnd = await counted();
      return atEnd === before;
    });
    return {
      responses: responses.length,
      statuses: countStatuses(responses),
      failures,
      connectionsKilled,
      wentBack,
      untold: responses.length - atEnd,
    };
  } finally {
    await load.stop();
    await gateway.stop('SIGKILL');
    await Promise.all([backend.close(), redis.stop()]);
  }
}
