import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { stringify } from 'yaml';
import { digestSecret, issueAdminToken } from '../../../gateway/shared/secrets.ts';
import { freePort } from '../../support/free-port.ts';
import { type GatewayProcess, makeKey, startGateway, testConfig } from '../../support/gateway-process.ts';
import { startRedis } from '../../support/start-redis.ts';
import { startStore } from '../../support/store-process.ts';
import { patientStore } from '../../support/tuning.ts';

/** Gateways with traffic, for screenshots and for measurements of an open page. */
export interface Scene {
  /** The origin of the operators' pages. */
  readonly origin: string;
  readonly token: string;
  readonly gateways: readonly GatewayProcess[];
  /** Kills one of the two targets. */
  killTarget(): Promise<void>;
  stop(): Promise<void>;
}

const plans = {
  free: { perMinute: 60, perDay: 1_000 },
  pro: { perMinute: 300, perDay: 10_000 },
  business: { perMinute: 10_000, perDay: 1_000_000 },
};

const hosts = ['127.0.0.2', '127.0.0.3'];

const customers = ['initech', 'hooli', 'stark', 'wayne', 'cyberdyne', 'tyrell', 'soylent', 'wonka', 'oscorp'];

/**
 * The requests per second of each key. The keys are in different states: acme is at its limit, globex is banned, and initrode has nearly
 * used up its limit of the day.
 */
function keysAndRates() {
  const known = [
    { entry: { id: 'umbrella', plan: 'business', name: 'Umbrella Corp.' }, perSecond: 30 },
    { entry: { id: 'globex', plan: 'free', name: 'Globex' }, perSecond: 4 },
    { entry: { id: 'initrode', plan: 'free', name: 'Initrode' }, perSecond: 0.9 },
    ...customers.map((id, index) => ({
      entry: { id, plan: index % 3 === 0 ? 'business' : 'pro' },
      perSecond: 0.2 + (index % 4) * 0.7,
    })),
  ];
  const others = Array.from({ length: 200 }, (_, index) => ({
    entry: { id: `customer-${String(index).padStart(3, '0')}`, plan: index % 4 === 0 ? 'pro' : 'free' },
    perSecond: index < 60 ? 0.03 : 0,
  }));
  return [...known, ...others].map(({ entry, perSecond }) => ({ ...makeKey(entry), perSecond }));
}

/** Starts three gateways on one Redis with two targets, and clients that send requests until `stop` is called. */
export async function startScene({
  gateways: number = 3,
}: {
  readonly gateways?: number;
} = {}): Promise<Scene> {
  const folder = await mkdtemp(join(tmpdir(), 'tollgate-scene-'));
  const hostsFile = join(folder, 'hosts');
  await writeFile(hostsFile, hosts.join('\n'));
  const port = await freePort();
  const redis = await startRedis();
  const targets = await Promise.all(
    hosts.map((HOST) => startStore({ HOST, PORT: `${port}`, STORE_SEED: 'demo' })),
  );
  const token = issueAdminToken();
  const keys = keysAndRates();
  const file = join(folder, 'keys.yaml');
  await writeFile(file, stringify(keys.map(({ entry }) => entry)));
  const config = testConfig({
    environment: 'production',
    upstream: { url: `http://store.internal:${port}`, health: '/healthz' },
    plans,
    keys: { file, directory: true },
    redis: { url: redis.url, prefix: 'scene' },
    admin: {
      host: '127.0.0.1',
      port: 0,
      tokens: [{ name: 'ada', may: 'write', sha256: digestSecret(token) }],
    },
  });
  const gateways = await Promise.all(
    Array.from({ length: number }, () =>
      startGateway(config, { tuning: { hostsFile, bounds: patientStore } }),
    ),
  );
  const leaving = new AbortController();
  const acme = { secret: await issueKey(gateways[0]?.adminUrl, token), perSecond: 1.4 };
  const clients = [...keys, acme].map((key) => callAgainAndAgain(key, gateways, leaving.signal));
  let isKilled = false;
  return {
    origin: gateways[0]?.adminUrl ?? '',
    token,
    gateways,
    async killTarget() {
      isKilled = true;
      await targets[1]?.stop();
    },
    async stop() {
      leaving.abort();
      await Promise.all(clients);
      await Promise.all(gateways.map((gateway) => gateway.stop('SIGKILL')));
      await Promise.all([redis.stop(), targets[0]?.stop(), isKilled ? undefined : targets[1]?.stop()]);
      await rm(folder, { recursive: true });
    },
  };
}

/** Issues a key of the directory. @returns its secret */
async function issueKey(adminUrl: string | undefined, token: string): Promise<string> {
  const headers = { authorization: `Bearer ${token}`, 'content-type': 'application/json' };
  const body = JSON.stringify({ id: 'acme', plan: 'free', name: 'Acme Inc.' });
  for (;;) {
    const response = await fetch(`${adminUrl}/api/v1/keys`, { method: 'POST', headers, body });
    const issued = (await response.json()) as { readonly secret?: string };
    if (issued.secret !== undefined) return issued.secret;
    // At this point, the gateway may not be connected to Redis yet.
    await sleep(100);
  }
}

const paths = ['/pets?limit=5', '/pets?limit=5', '/pets?limit=20', '/pets/1', '/pets?limit=3'];

/** One client. The rate of this key rises and falls over ten minutes, like real traffic. */
async function callAgainAndAgain(
  { secret, perSecond }: { readonly secret: string; readonly perSecond: number },
  gateways: readonly GatewayProcess[],
  signal: AbortSignal,
): Promise<void> {
  if (perSecond === 0) return;
  const headers = { authorization: `Bearer ${secret}` };
  for (let sent = 0; !signal.aborted; sent++) {
    const swing = 1 + 0.4 * Math.sin((performance.now() / 600_000) * 2 * Math.PI);
    const pauseMs = (1_000 / perSecond / swing) * (0.5 + Math.random());
    await sleep(pauseMs, undefined, { signal }).catch(() => {});
    if (signal.aborted) return;
    const gateway = gateways[sent % gateways.length]?.baseUrl;
    const path = paths[sent % paths.length];
    await fetch(`${gateway}${path}`, { headers, signal })
      .then((response) => response.arrayBuffer())
      .catch(() => {});
  }
}
