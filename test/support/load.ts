import { setTimeout as sleep } from 'node:timers/promises';
import { Client } from 'undici';

export interface Load {
  /** The URL `http://127.0.0.1:port` of each gateway. The clients distribute their requests among the gateways. */
  readonly origins: readonly string[];
  /** Secrets of valid keys, which the requests use in turn. */
  readonly secrets: readonly string[];
  /** The number of clients. Each client has one persistent connection and sends one request at a time. */
  readonly clients: number;
  /** The number of requests of all clients together; if absent, the load runs until it is stopped. */
  readonly requestsMax?: number;
  /** The pause between a response and the client's next request. */
  readonly pauseMs?: number;
  readonly path?: string;
  /** The body of each request, which makes the request a POST. */
  readonly postBody?: () => string;
  /** A client stops after a response with `Connection: close`, or when its next connection is refused. */
  readonly leavesOnClose?: boolean;
}

export interface LoadResponse {
  readonly status: number;
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
  readonly body: string;
  readonly origin: string;
  /** Times on a monotonic clock: `atMs` is the end of the response, and `tookMs` is the time from the request to this end. */
  readonly atMs: number;
  readonly tookMs: number;
}

interface LoadOutcome {
  readonly responses: LoadResponse[];
  /** The errors of requests without a complete response. */
  readonly failures: string[];
}

export interface RunningLoad extends LoadOutcome {
  /** Resolves after `requestsMax` requests. After `stop`, resolves when the requests in flight have ended. */
  readonly done: Promise<LoadOutcome>;
  stop(): Promise<LoadOutcome>;
}

/** Starts clients that send one request after the other. A failed request is counted and not retried. */
export function startLoad(load: Load): RunningLoad {
  const { origins, secrets, clients, requestsMax = Number.POSITIVE_INFINITY } = load;
  const responses: LoadResponse[] = [];
  const failures: string[] = [];
  let sent = 0;
  let stopped = false;

  const done = Promise.all(Array.from({ length: clients }, (_, index) => runClient(index))).then(() => ({
    responses,
    failures,
  }));

  async function runClient(index: number): Promise<void> {
    const origin = origins[index % origins.length] ?? '';
    const client = new Client(origin);
    while (!stopped && sent < requestsMax) {
      const secret = secrets[sent % secrets.length] ?? '';
      sent += 1;
      try {
        const response = await send(client, origin, secret);
        responses.push(response);
        if (load.leavesOnClose && response.headers.connection === 'close') break;
      } catch (error) {
        if (load.leavesOnClose && isNobodyThere(error)) break;
        failures.push(error instanceof Error ? `${error.name}: ${error.message}` : String(error));
        await sleep(20);
      }
      if (load.pauseMs !== undefined) await sleep(load.pauseMs);
    }
    await client.close();
  }

  async function send(client: Client, origin: string, secret: string): Promise<LoadResponse> {
    const startedMs = performance.now();
    const body = load.postBody?.();
    const response = await client.request({
      path: load.path ?? '/v1/pets?limit=1',
      method: body === undefined ? 'GET' : 'POST',
      headers: { authorization: `Bearer ${secret}`, 'content-type': 'application/json' },
      body: body ?? null,
    });
    const text = await response.body.text();
    const { statusCode: status, headers } = response;
    const atMs = performance.now();
    return { status, headers, body: text, origin, atMs, tookMs: atMs - startedMs };
  }

  return {
    responses,
    failures,
    done,
    stop() {
      stopped = true;
      return done;
    },
  };
}

/** Whether the connection was refused. */
function isNobodyThere(error: unknown): boolean {
  return error instanceof Error && 'code' in error && error.code === 'ECONNREFUSED';
}

/** The number of responses with each status, for example `{ 200: 60, 429: 10 }`. */
export function countStatuses(responses: readonly LoadResponse[]): Record<number, number> {
  const counts: Record<number, number> = {};
  for (const { status } of responses) counts[status] = (counts[status] ?? 0) + 1;
  return counts;
}

/** The time in ms within which this share of the responses was complete. */
export function quantile(responses: readonly LoadResponse[], share: number): number {
  const times = responses.map(({ tookMs }) => tookMs).toSorted((a, b) => a - b);
  return times[Math.min(times.length - 1, Math.floor(times.length * share))] ?? 0;
}
