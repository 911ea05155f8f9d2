import { setTimeout as sleep } from 'node:timers/promises';
import { Client } from 'undici';

export interface Load {
  /** `http://127.0.0.1:port`; the clients are spread over them. */
  readonly origins: readonly string[];
  /** Of valid keys; each client uses one of them in turn. */
  readonly secrets: readonly string[];
  /** Each with one kept-alive connection, one request at a time. */
  readonly clients: number;
  /** Requests of all clients together; without it the load goes on until it is stopped. */
  readonly requestsMax?: number;
  /** Between an answer and the client's next request. */
  readonly pauseMs?: number;
  readonly path?: string;
  /** The body of a request that is to be a POST. */
  readonly postBody?: () => string;
  /** A client that was told `Connection: close`, or finds nobody listening when it sends its next request, is done. */
  readonly leavesOnClose?: boolean;
}

export interface LoadResponse {
  readonly status: number;
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
  readonly body: string;
  readonly origin: string;
  /** When it was whole, and how long it took; monotonic. */
  readonly atMs: number;
  readonly tookMs: number;
}

export interface LoadOutcome {
  readonly responses: LoadResponse[];
  /** Requests that got no whole answer. */
  readonly failures: string[];
}

export interface RunningLoad extends LoadOutcome {
  /** Settles when `requestsMax` are answered, or the load was stopped and what was under way is over. */
  readonly done: Promise<LoadOutcome>;
  stop(): Promise<LoadOutcome>;
}

/** Clients that send one request after the other, without retries: what fails is counted. */
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

/** The connection was refused, so no request was sent. */
function isNobodyThere(error: unknown): boolean {
  return error instanceof Error && 'code' in error && error.code === 'ECONNREFUSED';
}

/** How many answers of each status there are, for example `{ 200: 60, 429: 10 }`. */
export function countStatuses(responses: readonly LoadResponse[]): Record<number, number> {
  const counts: Record<number, number> = {};
  for (const { status } of responses) counts[status] = (counts[status] ?? 0) + 1;
  return counts;
}
