import keySlot from 'cluster-key-slot';
import { Cluster } from 'ioredis';
import type { Decision } from '../../gateway/shared/model.ts';
import { type ClusterServer, moveSlot, startCluster } from '../support/start-cluster.ts';
import { patientStore } from '../support/tuning.ts';
import { until } from '../support/until.ts';
import { admittedOf, bans, decideAtOnce, isWhole, keyNamed, openBareLimiters } from './limiters.ts';

const prefix = 'test';
const nodeTimeoutMs = 1_000;

export interface Migration {
  readonly requests: number;
  readonly admitted: number;
  /** The final count in Redis. */
  readonly used: number;
  /** The number of slot moves under load. */
  readonly moves: number;
  /** Decisions without Redis. */
  readonly local: number;
}

/**
 * Three limiters decide requests of one key while its slot moves between masters. One of the masters is new, so no limiter is connected to
 * it.
 */
export async function measureMigration({
  limit,
  requests,
  movesMin = 1,
}: {
  readonly limit: number;
  readonly requests: number;
  /** The minimum number of slot moves. The moves divide the requests into equal parts. */
  readonly movesMin?: number;
}): Promise<Migration> {
  const cluster = await startCluster({ hasReplicas: false });
  const place = { cluster: cluster.urls };
  const all = await openBareLimiters(3, { place, prefix, bounds: patientStore });
  try {
    const key = keyNamed('moved', limit);
    const slot = keySlot(key.id);
    const first = cluster.ownerOf(slot);
    // The slot also contains other keys, so that each move takes some time.
    await Promise.all(
      Array.from({ length: 200 }, (_, index) =>
        first.inspector.set(`${prefix}:{${key.id}}:other:${index}`, 1),
      ),
    );
    const route = [await cluster.addMaster(), ...cluster.masters.filter((master) => master !== first), first];
    const decisions: Decision[] = [];
    let sent = 0;
    let moves = 0;
    let moved = Promise.withResolvers<void>();
    const clients = all.flatMap(({ limiter }) =>
      Array.from({ length: 10 }, async () => {
        while (sent < requests) {
          if (sent >= (requests / (movesMin + 1)) * (moves + 1)) {
            await moved.promise;
            continue;
          }
          sent += 1;
          const decision = await limiter.decide(key, { bans }, { units: 1 });
          if (decision.kind !== 'stale') decisions.push(decision);
        }
      }),
    );
    let owner = first;
    while (sent < requests) {
      const next = route[moves % route.length] as ClusterServer;
      await moveSlot(slot, owner, next);
      owner = next;
      moves += 1;
      moved.resolve();
      moved = Promise.withResolvers();
      // On a busy machine, a slot that moves without a pause would redirect each request many times.
      const decided = decisions.length;
      await until(
        'requests are decided between two moves',
        () => sent >= requests || decisions.length >= decided + clients.length,
      );
    }
    await Promise.all(clients);
    const used = Number(await owner.inspector.hget(`${prefix}:{${key.id}}`, 'dayUsed'));
    const local = decisions.filter(({ source }) => source !== 'shared').length;
    return { requests: decisions.length, admitted: admittedOf(decisions), used, moves, local };
  } finally {
    await Promise.all(all.map(({ limiter }) => limiter.close()));
    await cluster.stop();
  }
}

export interface LostReply {
  /** The requests in progress when the master died, and the number of these requests that the promoted replica has counted. */
  readonly sent: number;
  readonly counted: number;
  /**
   * A second client uses the default of ioredis, which repeats a command that got no reply. `countedByDefault` is the number of times that
   * Redis ran one command of the second client.
   */
  readonly countedByDefault: number;
  readonly logged: readonly string[];
}

/** A relay delays the replies of a master. The master is killed after its script has run and has been replicated. */
export async function measureLostReply(): Promise<LostReply> {
  const cluster = await startCluster({ relayed: true });
  const [one] = await openBareLimiters(1, { place: { cluster: cluster.urls }, prefix, bounds: patientStore });
  const careless = new Cluster([...cluster.urls], { maxRedirections: 1_000, retryDelayOnMoved: 100 });
  careless.on('error', () => {});
  if (one === undefined) throw new Error('a limiter was opened');
  const { limiter, logged } = one;
  try {
    const key = keyNamed('charged', 1_000);
    const name = `${prefix}:{${key.id}}`;
    const counter = `other:{${key.id}}`;
    const index = cluster.masters.indexOf(cluster.ownerOf(keySlot(key.id)));
    const [master, replica, relay] = [cluster.masters[index], cluster.replicas[index], cluster.relays[index]];
    if (!master || !replica || !relay) throw new Error('a master with replica and relay');
    await replica.inspector.readonly();
    await decideAtOnce(limiter, key, 1);
    await careless.incr(counter);

    relay.delay({ toServerMs: 0, toClientMs: 600_000 });
    const sent = 7;
    const pending = decideAtOnce(limiter, key, sent);
    const pendingCount = careless.incr(counter);
    await until('the script has run, here and on the replica', async () => {
      const [used, count] = await Promise.all([
        replica.inspector.hget(name, 'dayUsed'),
        replica.inspector.get(counter),
      ]);
      return Number(used) === 1 + sent && Number(count) === 2;
    });
    await cluster.promoteAfter(nodeTimeoutMs);
    await master.server.kill();
    relay.cut();
    await pending;
    await pendingCount;
    await until('the replica of the killed master serves', () => isWhole(limiter));
    return {
      sent,
      counted: Number(await replica.inspector.hget(name, 'dayUsed')) - 1,
      countedByDefault: Number(await replica.inspector.get(counter)) - 1,
      logged,
    };
  } finally {
    careless.disconnect();
    await limiter.close();
    await cluster.stop();
  }
}

export interface LimiterFailover {
  readonly limit: number;
  readonly admitted: { readonly before: number; readonly away: number; readonly after: number };
  /** The count on the promoted server at the end. */
  readonly used: number;
  /** The time from the failure until every limiter uses all servers again. */
  readonly backAfterMs: number;
  readonly logged: readonly (readonly string[])[];
}

/**
 * A Cluster master is killed, and the Cluster promotes its replica. Two limiters use the Cluster. During the failure, the limiters decide
 * only one burst of requests.
 */
export async function measureClusterFailover(limit: number): Promise<LimiterFailover> {
  const cluster = await startCluster();
  const all = await openBareLimiters(2, { place: { cluster: cluster.urls }, prefix, bounds: patientStore });
  try {
    const key = keyNamed('failed-over', limit);
    const name = `${prefix}:{${key.id}}`;
    const index = cluster.masters.indexOf(cluster.ownerOf(keySlot(key.id)));
    const [master, replica] = [cluster.masters[index], cluster.replicas[index]];
    if (!master || !replica) throw new Error('a master with a replica');
    const spend = async (requests: number) => {
      const outcomes = await Promise.all(all.map(({ limiter }) => decideAtOnce(limiter, key, requests)));
      return admittedOf(outcomes.flat());
    };
    const before = await spend(limit / 4);
    await replica.inspector.readonly();
    await until(
      'the counts are replicated',
      async () => Number(await replica.inspector.hget(name, 'dayUsed')) === before,
    );
    await cluster.promoteAfter(nodeTimeoutMs);
    const failedAtMs = performance.now();
    await master.server.kill();
    await until('the limiters have noticed the failure', () => all.every(({ limiter }) => !isWhole(limiter)));
    const away = await spend(limit / 8);
    await until('the replica serves', () => all.every(({ limiter }) => isWhole(limiter)));
    const backAfterMs = performance.now() - failedAtMs;
    await until(
      'local use is written back',
      async () => Number(await replica.inspector.hget(name, 'dayUsed')) >= before + away,
    );
    const after = await spend(2 * limit);
    return {
      limit,
      admitted: { before, away, after },
      used: Number(await replica.inspector.hget(name, 'dayUsed')),
      backAfterMs,
      logged: all.map(({ logged }) => logged),
    };
  } finally {
    await Promise.all(all.map(({ limiter }) => limiter.close()));
    await cluster.stop();
  }
}
