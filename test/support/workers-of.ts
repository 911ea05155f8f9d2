import { askAdmin } from './admin-client.ts';
import type { GatewayProcess } from './gateway-process.ts';
import { until } from './until.ts';

export interface ListedWorker {
  readonly worker: number;
  readonly pid: number;
  readonly connections: number;
}

/** The workers of a gateway, by number, from its admin API. */
export async function workersOf(gateway: GatewayProcess, token: string): Promise<readonly ListedWorker[]> {
  const { body } = await askAdmin(Number(new URL(gateway.adminUrl).port), '/api/v1/state', { token });
  const workers: ListedWorker[] = body.processes;
  return workers.toSorted((a, b) => a.worker - b.worker);
}

/** Kills a worker, as the kernel does when memory is short. Resolves when another worker has replaced the killed worker. */
export async function killWorker(gateway: GatewayProcess, pid: number, token: string): Promise<void> {
  const before = (await workersOf(gateway, token)).length;
  process.kill(pid, 'SIGKILL');
  await until('another worker serves', async () => {
    const now = await workersOf(gateway, token);
    return now.length === before && now.every((worker) => worker.pid !== pid);
  });
}
