import { thresholdsOf } from '../notify/notify-schema.ts';
import type {
  GithubKey,
  Keys,
  Operation,
  Receiver,
  RedisSettings,
  Settings,
  Upstream,
  UpstreamTls,
} from '../shared/model.ts';
import type { RawSettings, RawUpstream } from './schema/settings-schema.ts';

/** Builds the settings from validated parts. The parts already contain the defaults. */
export function buildSettings(parts: {
  readonly raw: RawSettings;
  readonly plans: Settings['plans'];
  readonly keys: Keys;
  readonly keysFile: Settings['keysFile'] | undefined;
  readonly operations: readonly Operation[];
  readonly redis: RedisSettings | undefined;
  readonly notify: readonly Receiver[];
  readonly upstreamTls: ReadonlyMap<RawUpstream, UpstreamTls>;
  readonly certificates: Partial<Record<'listen' | 'admin', Settings['listen']['tls']>>;
  readonly version: string;
  readonly docs?: Settings['docs'];
  readonly githubKeys?: readonly GithubKey[] | undefined;
}): Settings {
  const { raw, plans, keys, keysFile, operations, redis, notify, certificates, version, docs } = parts;
  return {
    version,
    environment: raw.environment,
    basePath: basePathOf(raw),
    workers: raw.workers,
    listen: { host: raw.listen.host, port: raw.listen.port, tls: certificates.listen },
    admin: {
      host: raw.admin.host,
      port: raw.admin.port,
      tls: certificates.admin,
      tokens: raw.admin.tokens,
      hosts: raw.admin.hosts.map((host) => host.toLowerCase()),
    },
    redis,
    upstreams: buildUpstreams(raw, parts.upstreamTls),
    plans,
    keys,
    directory: typeof raw.keys === 'object' && 'directory' in raw.keys && raw.keys.directory,
    keysFile,
    operations,
    limitsPath: raw.limitsPath,
    leaksPath: raw.leaksPath,
    leaks: {
      onLeak: raw.leaks.onLeak,
      github: raw.leaks.github && { keysUrl: raw.leaks.github.keysUrl, keys: parts.githubKeys },
    },
    selfService: raw.selfService,
    docs,
    bans: {
      after: raw.bans.after,
      withinMs: raw.bans.within,
      forMs: raw.bans.for,
      maxMs: raw.bans.max,
    },
    addressBucket: raw.addressBucket,
    bodyBytesMax: raw.bodyBytesMax,
    usage: raw.usage,
    notify,
    thresholds: thresholdsOf(notify),
    cors: raw.cors,
    hsts: raw.hsts && {
      maxAgeSeconds: raw.hsts.maxAge / 1_000,
      includeSubDomains: raw.hsts.includeSubDomains,
    },
    trustedProxies: raw.trustedProxies.filter((entry) => entry !== ''),
  };
}

/** The prefix of every operation, for example `/v1`. */
export function basePathOf({ baseUrl }: Pick<RawSettings, 'baseUrl'>): string {
  return new URL(baseUrl).pathname.replace(/\/$/, '');
}

/** The name of the upstream that the setting `upstream` defines. */
export const shortFormName = 'default';

function buildUpstreams(
  { upstream, upstreams }: RawSettings,
  tls: ReadonlyMap<RawUpstream, UpstreamTls>,
): Upstream[] {
  if (upstream !== undefined) return [buildUpstream(shortFormName, upstream, tls.get(upstream))];
  return Object.entries(upstreams ?? {}).map(([name, raw]) => buildUpstream(name, raw, tls.get(raw)));
}

function buildUpstream(
  name: string,
  { url, health, host, encodedSlashes, timeouts }: RawUpstream,
  tls: UpstreamTls | undefined,
): Upstream {
  const { connect, headers, total } = timeouts;
  return {
    name,
    url: new URL(url).origin,
    tls,
    health,
    host,
    encodedSlashes,
    timeouts: { connectMs: connect, headersMs: headers, totalMs: total },
  };
}
