import { setTimeout as sleep } from 'node:timers/promises';
import keySlot from 'cluster-key-slot';
import { makeToken } from '../support/admin-client.ts';
import { fetchOnce } from '../support/fetch-once.ts';
import { originOf, readiness } from '../support/fleet.ts';
import { type GatewayProcess, makeCustomKey, startGateway, testConfig } from '../support/gateway-process.ts';
import { countStatuses, startLoad } from '../support/load.ts';
import { startCluster } from '../support/start-cluster.ts';
import { startStore } from '../support/store-process.ts';
import type { Tuning } from '../support/tuning.ts';
import { until } from '../support/until.ts';

/** The ways to lose a Cluster server without a replica. */
export type Loss = 'killed' | 'frozen';

export interface DeadShard {
  /** The number of responses for each status: to keys of the lost server, and to keys of the other servers. */
  readonly lost: Record<number, number>;
  readonly others: Record<number, number>;
  readonly failures: readonly string[];
  /** The number of decisions for each source, from the loss to the repair. Only keys of the other servers are counted. */
  readonly othersDecidedBy: Readonly<Record<string, number>>;
  /** The duration of the slowest response after the loss. */
  readonly slowestMs: number;
  /** The responses of `/readyz` during the loss, from a process with `local` and from a process with `refuse`. */
  readonly ready: readonly { readonly httpStatus: number; readonly reasons: readonly string[] }[];
  /** The name of the lost server in the Cluster. */
  readonly name: string;
  /** Two statuses from a process with `refuse`: for a key of the lost server, and for another key. */
  readonly refusing: readonly [number, number];
  /**
   * Two entries of the key list during the loss: for a key of the lost server, and for another key. An entry has the key's state and the
   * number of its windows.
   */
  readonly listed: readonly (readonly [string, number] | undefined)[];
  /** The time from the repair until every process was connected to all servers. */
  readonly backAfterMs: number;
  /**
   * Figures of a key of the lost server. The processes with `local` admitted `admittedAway` requests during the loss. After the repair,
   * Redis had counted `usedAfter` requests.
   */
  readonly admittedAway: number;
  readonly usedAfter: number;
}

/** One of three servers without replicas is lost under load for `holdMs`. */
export async function measureDeadShard(
  loss: Loss,
  { holdMs, bounds }: { holdMs: number; bounds?: NonNullable<Tuning['bounds']> },
): Promise<DeadShard> {
  const cluster = await startCluster({ hasReplicas: false });
  const store = await startStore();
  const serverOf = (id: string) => cluster.ownerOf(keySlot(id));
  const onLost = makeCustomKey(1_000_000, 1_000_000);
  const lostServer = serverOf(onLost.entry.id);
  const counted = keyWhere((id) => serverOf(id) === lostServer);
  const onOther = keyWhere((id) => serverOf(id) !== lostServer);
  const token = makeToken();
  const config = (onFailure: string) =>
    testConfig({
      upstream: { url: store.url, health: '/healthz' },
      keys: [onLost, counted, onOther].map(({ entry }) => entry),
      bans: { after: 1_000_000 },
      admin: { host: '127.0.0.1', port: 0, tokens: [token.entry] },
      redis: { cluster: cluster.urls, prefix: 'test', onFailure },
    });
  const gateways = await Promise.all(
    ['local', 'local', 'refuse'].map((onFailure) =>
      startGateway(config(onFailure), { ...(bounds && { tuning: { bounds } }) }),
    ),
  );
  const [first, , refuser] = gateways;
  if (first === undefined || refuser === undefined) throw new Error('three gateways were started');
  const locals = gateways.slice(0, 2).map(originOf);
  const path = '/v1/store/orders';
  const load = (secret: string) =>
    startLoad({ origins: locals, secrets: [secret], clients: 4, pauseMs: 10, path });
  const statusOf = async (secret: string) => {
    const headers = { authorization: `Bearer ${secret}` };
    const response = await fetchOnce(`${originOf(refuser)}${path}`, headers);
    await response.text();
    return response.status;
  };
  try {
    await until('every gateway is connected to every server of Redis', async () =>
      (await Promise.all(gateways.map(readiness))).every(isOk),
    );
    const loads = [load(onLost.secret), load(onOther.secret)] as const;
    await sleep(holdMs / 2);

    const lostAtMs = performance.now();
    const linesBefore = gateways.map(({ lines }) => lines.length);
    if (loss === 'killed') await lostServer.server.kill();
    else lostServer.server.freeze();
    const isAway = ({ msg }: Record<string, unknown>) => msg === `Redis server ${lostServer.name} is away`;
    await Promise.all(gateways.map((gateway) => gateway.line(isAway)));
    const spent = startLoad({
      ...{ origins: locals, secrets: [counted.secret], clients: 4, requestsMax: 200, path },
    });
    const admittedAway = (await spent.done).responses.filter(({ status }) => status === 200).length;
    await sleep(holdMs);
    const ready = await Promise.all([first, refuser].map(readiness));
    const refusing = [await statusOf(onLost.secret), await statusOf(onOther.secret)] as const;
    const listed = await listedBy(first, token.token, [onLost.entry.id, onOther.entry.id]);
    const linesMeanwhile = gateways
      .slice(0, 2)
      .flatMap(({ lines }, index) => lines.slice(linesBefore[index]));

    const repairedAtMs = performance.now();
    if (loss === 'killed') await lostServer.server.restart();
    else lostServer.server.thaw();
    await until('every gateway is connected to every server of Redis', async () =>
      (await Promise.all(gateways.map(readiness))).every(isOk),
    );
    const backAfterMs = performance.now() - repairedAtMs;
    const usedNow = async () =>
      Number(await lostServer.inspector.hget(`test:{${counted.entry.id}}`, 'dayUsed'));
    await until('local use is written back', async () => (await usedNow()) >= admittedAway);
    const [lost, others] = await Promise.all(loads.map((one) => one.stop()));
    if (lost === undefined || others === undefined) throw new Error('two loads were started');
    const late = [...lost.responses, ...others.responses].filter(({ atMs }) => atMs >= lostAtMs);
    const decidedBy = linesMeanwhile.flatMap(({ keyId, source }) =>
      keyId === onOther.entry.id && typeof source === 'string' ? [source] : [],
    );
    return {
      lost: countStatuses(lost.responses),
      others: countStatuses(others.responses),
      failures: [...lost.failures, ...others.failures],
      othersDecidedBy: Object.fromEntries(
        [...Map.groupBy(decidedBy, (source) => source)].map(([source, all]) => [source, all.length]),
      ),
      slowestMs: Math.max(...late.map(({ tookMs }) => tookMs)),
      ready: ready.map(({ httpStatus, body }) => ({ httpStatus, reasons: body.reasons })),
      name: lostServer.name,
      refusing,
      listed,
      backAfterMs,
      admittedAway,
      usedAfter: await usedNow(),
    };
  } finally {
    await Promise.all(gateways.map((gateway) => gateway.stop('SIGKILL')));
    await Promise.all([cluster.stop(), store.stop()]);
  }
}

async function listedBy({ adminUrl }: GatewayProcess, token: string, ids: readonly string[]) {
  const headers = { authorization: `Bearer ${token}` };
  const response = await fetchOnce(`${adminUrl}/api/v1/keys`, headers);
  const { keys } = (await response.json()) as { keys: { id: string; state: string; windows: unknown[] }[] };
  return ids.map((id) => {
    const item = keys.find((key) => key.id === id);
    return item && ([item.state, item.windows.length] as const);
  });
}

function keyWhere(isWanted: (id: string) => boolean) {
  for (;;) {
    const key = makeCustomKey(1_000_000, 1_000_000);
    if (isWanted(key.entry.id)) return key;
  }
}

function isOk({ body }: Awaited<ReturnType<typeof readiness>>): boolean {
  return body.status === 'ok';
}
