/**
 * The thread that `admin-load.ts` starts. The thread repeats one request to the admin API on each of its connections, until it receives a
 * stop message.
 */
import { Agent, request } from 'node:http';
import { parentPort, workerData } from 'node:worker_threads';

export interface AdminFlood {
  readonly port: number;
  readonly token: string;
  readonly connections: number;
  readonly asked: {
    readonly path: string;
    readonly method?: string;
    /** The number of edited keys in the body. */
    readonly keysInBody?: number;
    /** The number of days for which the request reads the usage record. The period ends at the current time. */
    readonly days?: number;
  };
}

export interface FloodResult {
  readonly statuses: Record<string, number>;
  readonly octets: number;
}

const { port, token, connections, asked } = workerData as AdminFlood;
const { method = 'GET', keysInBody, days } = asked;
const from =
  days === undefined ? undefined : new Date(Date.now() - days * 86_400_000 + 120_000).toISOString();
const path = `/api/v1${asked.path}${method === 'GET' && from !== undefined ? `?from=${from}` : ''}`;
const body = method === 'GET' ? undefined : Buffer.from(bodyText());
const agent = new Agent({ keepAlive: true, maxSockets: connections });
const statuses: Record<string, number> = {};
let octets = 0;
let isStopped = false;

function bodyText(): string {
  if (keysInBody === undefined) return JSON.stringify({ from, plans: { free: { perMinute: 1 } } });
  const keys = Array.from({ length: keysInBody }, (_, index) => `"k${String(index).padStart(6, '0')}":{}`);
  return `{"keys":{${keys.join(',')}}}`.slice(0, 4_194_000);
}

async function ask(): Promise<void> {
  while (!isStopped) {
    const status = await askOnce();
    statuses[status] = (statuses[status] ?? 0) + 1;
    // The gateway needs little CPU time for a refusal, so this client would repeat its request very fast. A pause after each refusal limits
    // the client's CPU time.
    if (status !== '200') await new Promise((resolve) => setTimeout(resolve, 5));
  }
}

function askOnce(): Promise<string> {
  return new Promise((resolve) => {
    const sent = request({
      host: '127.0.0.1',
      port,
      path,
      method,
      agent,
      headers: {
        authorization: `Bearer ${token}`,
        ...(body && { 'content-type': 'application/json', 'content-length': body.length }),
      },
    });
    sent.on('error', (error: NodeJS.ErrnoException) => resolve(error.code ?? error.message));
    sent.on('response', (response) => {
      response.on('data', (chunk: Buffer) => {
        octets += chunk.length;
      });
      response.once('close', () => resolve(String(response.statusCode)));
    });
    sent.end(body);
  });
}

for (let connection = 0; connection < connections; connection++) void ask();

parentPort?.once('message', () => {
  isStopped = true;
  agent.destroy();
  parentPort?.postMessage({ statuses, octets } satisfies FloodResult);
});
