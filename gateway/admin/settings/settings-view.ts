import { hash } from 'node:crypto';
import { setImmediate as nextTurn } from 'node:timers/promises';
import type { RawKey } from '../../keys/key-schema.ts';
import { tableIn } from '../../keys/key-table.ts';
import type {
  Certificate,
  Key,
  Limits,
  Plan,
  RedisSettings,
  Settings,
  Upstream,
  UpstreamTls,
} from '../../shared/model.ts';
import { digestStart } from '../../shared/secrets.ts';
import { maskUrl } from './mask-url.ts';

/** Keys that are looked at in one turn of the event loop, so that requests wait for milliseconds at most. */
const keysPerTurn = 500;

/**
 * The effective configuration as JSON, with every default filled in and without secrets: of digests the beginning, of PEM
 * files a digest, of URLs no credentials. The order is always the same, so that two can be compared: keys, plans and
 * operations by name, upstreams as configured, since the first is the default.
 */
export async function settingsText(settings: Settings): Promise<string> {
  const keys = tableIn(settings.keys);
  const texts: string[] = [];
  for (const stated of keys.stated()) {
    const key = keys.get(stated.id);
    if (key !== undefined) texts.push(JSON.stringify(keyView(stated, key)));
    if (texts.length % keysPerTurn === 0) await nextTurn();
  }
  return `${JSON.stringify(settingsMembers(settings)).slice(0, -1)},"keys":[${texts.join(',')}]}`;
}

/** All members except the keys. */
export function settingsMembers(settings: Settings): Readonly<Record<string, unknown>> {
  const { version, environment, basePath, workers, listen, admin, redis, bans, addressBucket, hsts } =
    settings;
  const { bodyBytesMax, usage, trustedProxies, cors, limitsPath, docs, directory } = settings;
  return {
    version,
    environment,
    basePath,
    workers,
    listen: { host: listen.host, port: listen.port, ...tlsView(listen.tls) },
    admin: {
      host: admin.host,
      port: admin.port,
      ...tlsView(admin.tls),
      hosts: admin.hosts,
      tokens: admin.tokens.map(({ name, may, sha256 }) => ({ name, may, digestStart: digestStart(sha256) })),
    },
    ...(redis && { redis: redisView(redis) }),
    upstreams: settings.upstreams.map(upstreamView),
    plans: [...settings.plans.values()].sort((a, b) => compare(a.name, b.name)).map(planView),
    operations: settings.operations.toSorted((a, b) => compare(a.id, b.id)).map(operationView),
    ...(limitsPath !== undefined && { limitsPath }),
    ...(docs && { docsPath: docs.path }),
    directory,
    bans,
    addressBucket,
    bodyBytesMax,
    usage,
    ...(cors && { cors }),
    ...(hsts && { hsts }),
    trustedProxies,
    ...(settings.keysFile && { keysFile: settings.keysFile.path }),
  };
}

function redisView({ url, cluster, sentinel, tls, prefix, onFailure }: RedisSettings): object {
  return {
    ...(url !== undefined && { url: maskUrl(url) }),
    ...(cluster && { cluster: cluster.map(maskUrl) }),
    ...(sentinel && { sentinel: { name: sentinel.name, hosts: sentinel.hosts } }),
    ...(tls && { tls: clientTlsView(tls) }),
    prefix,
    onFailure,
  };
}

function clientTlsView({ ca, own }: Pick<UpstreamTls, 'ca' | 'own'>): object {
  return {
    ...(ca !== undefined && { caDigestStart: digestStart(hash('sha256', ca)) }),
    ...(own && { certDigestStart: digestStart(hash('sha256', own.cert)) }),
  };
}

function operationView({ deprecation, ...operation }: Settings['operations'][number]): object {
  if (deprecation === undefined) return operation;
  const { sinceMs, sunsetMs, ...rest } = deprecation;
  return {
    ...operation,
    deprecation: {
      sinceAt: new Date(sinceMs).toISOString(),
      ...(sunsetMs !== undefined && { sunsetAt: new Date(sunsetMs).toISOString() }),
      ...rest,
    },
  };
}

function upstreamView({ name, url, health, host, timeouts, tls }: Upstream): object {
  const serverName = tls?.serverName;
  return {
    name,
    url,
    health,
    host,
    timeouts,
    ...(tls && { tls: { ...clientTlsView(tls), ...(serverName !== undefined && { serverName }) } }),
  };
}

function tlsView(tls: Certificate | undefined): object {
  if (tls === undefined) return {};
  const { file, cert, notAfterMs } = tls;
  const expiresAt = new Date(notAfterMs).toISOString();
  return { tls: { file, certDigestStart: digestStart(hash('sha256', cert)), expiresAt } };
}

/** A plan with every member that it has. */
export function planView({ name, isCustom, limits, ...rest }: Plan): object {
  return { name, isCustom, windows: windowsView(limits), ...rest };
}

/** As windows are named in all of the API. */
function windowsView(limits: Limits): object {
  return limits.map(({ window, max }) => ({ name: window, limit: max }));
}

/** The stated form of a key, with the limits and operations that it gets on its plan. */
function keyView(
  { limits: _, operations: __, disabled, secrets, ...stated }: RawKey,
  { limits, operations }: Key,
): object {
  return {
    ...stated,
    windows: windowsView(limits),
    ...(operations && { operations }),
    disabled,
    secrets: secrets
      .toSorted((a, b) => compare(a.sha256, b.sha256))
      .map(({ sha256, expires }) => ({
        digestStart: digestStart(sha256),
        ...(expires !== undefined && { expiresAt: new Date(expires).toISOString() }),
      })),
  };
}

/** By code units: the order does not depend on the machine's language. */
function compare(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0;
}
