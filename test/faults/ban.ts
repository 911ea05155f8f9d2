import { setTimeout as sleep } from 'node:timers/promises';
import { type Fleet, startFleet } from '../support/fleet.ts';
import { makeCustomKey } from '../support/gateway-process.ts';
import { type LoadResponse, startLoad } from '../support/load.ts';
import { patientStore } from '../support/tuning.ts';

export interface Ban {
  /** The error code and Retry-After of the response that announced the ban. */
  readonly code: string;
  readonly retryAfterSeconds: number;
  /** The responses of all processes during the ban, counted by error code or status. */
  readonly during: Record<string, number>;
  /** The number of requests admitted during the ban, by Redis's clock. */
  readonly admittedDuring: number;
  /** The status of the last response before the ban ended, and the statuses from two processes at the announced end of the ban. */
  readonly lastBeforeEnd: number;
  readonly atTheTime: readonly number[];
  /** The time from the end of the ban in Redis to the first request that any process admitted, by Redis's clock. */
  readonly liftedAfterMs: number;
  /** The Retry-After of the next ban of the same key. */
  readonly nextSeconds: number;
}

const limitPerMinute = 5;
const refusalsToBan = 4;

/**
 * Bans a key through one of three processes. Windows last two seconds, and bans last longer.
 */
export async function measureBan({ banSeconds = 3 } = {}): Promise<Ban> {
  const key = makeCustomKey(limitPerMinute, 1_000_000);
  const fleet = await startFleet({
    starts: Array.from({ length: 3 }, () => ({
      tuning: { bounds: patientStore, windowsMs: { minute: 2_000, day: 86_400_000_000 } },
    })),
    config: {
      keys: [key.entry],
      bans: { after: refusalsToBan, within: '10s', for: `${banSeconds}s`, max: '60s' },
    },
  });
  const send = async (origin: string): Promise<LoadResponse> => {
    const load = startLoad({ origins: [origin], secrets: [key.secret], clients: 1, requestsMax: 1 });
    const { responses, failures } = await load.done;
    const [response] = responses;
    if (response === undefined) throw new Error(failures.join());
    return response;
  };
  const [first = '', second = '', third = ''] = fleet.origins;
  try {
    // Sends one request to each process, so that later requests use open connections.
    for (const origin of fleet.origins) await send(origin);
    const banned = await sendUntilBanned(() => send(first));
    const announcedMs = (await redisNowMs(fleet)) + banned.retryAfterSeconds * 1000;

    const during: Record<string, number> = {};
    let admittedDuring = 0;
    let lastBeforeEnd = 0;
    const endMs = await bannedUntilMs(fleet, key.entry.id);
    while ((await redisNowMs(fleet)) < endMs) {
      for (const origin of [second, third, first]) {
        const response = await send(origin);
        const beforeEnd = (await redisNowMs(fleet)) < endMs;
        if (!beforeEnd) break;
        during[codeOf(response)] = (during[codeOf(response)] ?? 0) + 1;
        if (response.status === 200) admittedDuring += 1;
        lastBeforeEnd = response.status;
      }
      await sleep(50);
    }
    await sleep(Math.max(0, announcedMs - (await redisNowMs(fleet))));
    const atTheTime = [await send(first), await send(second)].map(({ status }) => status);
    const liftedAfterMs = (await redisNowMs(fleet)) - endMs;
    const next = await sendUntilBanned(() => send(third));
    return {
      ...banned,
      during,
      admittedDuring,
      lastBeforeEnd,
      atTheTime,
      liftedAfterMs,
      nextSeconds: next.retryAfterSeconds,
    };
  } finally {
    await fleet.stop();
  }
}

async function sendUntilBanned(send: () => Promise<LoadResponse>) {
  for (let sent = 0; sent < 100; sent += 1) {
    const response = await send();
    if (codeOf(response) === 'key_banned') {
      return { code: 'key_banned', retryAfterSeconds: Number(response.headers['retry-after']) };
    }
  }
  throw new Error('a hundred requests did not ban the key');
}

function codeOf({ status, body }: LoadResponse): string {
  return status === 200 ? 'admitted' : JSON.parse(body).code;
}

async function redisNowMs({ inspector }: Fleet): Promise<number> {
  const [seconds, microseconds] = await inspector.time();
  return Number(seconds) * 1000 + Math.floor(Number(microseconds) / 1000);
}

async function bannedUntilMs({ inspector, prefix }: Fleet, keyId: string): Promise<number> {
  return Number(await inspector.hget(`${prefix}:{${keyId}}`, 'bannedUntilMs'));
}
