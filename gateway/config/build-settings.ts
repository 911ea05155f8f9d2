import type {
  Certificate,
  Keys,
  ListenAddress,
  Operation,
  RedisSettings,
  Settings,
  Upstream,
  UpstreamTls,
} from '../shared/model.ts';
import type { Certificates } from '../shared/tls/certificate-expiry.ts';
import type { RawSettings, RawUpstream } from './schema/settings-schema.ts';

/** Builds the settings from validated parts, in which defaults are filled in. */
export function buildSettings(parts: {
  readonly raw: RawSettings;
  readonly plans: Settings['plans'];
  readonly keys: Keys;
  readonly keysFile: Settings['keysFile'] | undefined;
  readonly operations: readonly Operation[];
  readonly redis: RedisSettings | undefined;
  readonly upstreamTls: ReadonlyMap<RawUpstream, UpstreamTls>;
  readonly certificates: Certificates;
  readonly version: string;
  readonly docs?: Settings['docs'];
}): Settings {
  const { raw, plans, keys, keysFile, operations, redis, certificates, version, docs } = parts;
  return {
    version,
    environment: raw.environment,
    basePath: basePathOf(raw),
    workers: raw.workers,
    listen: buildAddress(raw.listen, certificates.listen),
    admin: {
      ...buildAddress(raw.admin, certificates.admin),
      tokens: raw.admin.tokens,
      hosts: raw.admin.hosts.map((host) => host.toLowerCase()),
    },
    ...(redis && { redis }),
    upstreams: buildUpstreams(raw, parts.upstreamTls),
    plans,
    keys,
    directory: typeof raw.keys === 'object' && 'directory' in raw.keys && raw.keys.directory,
    ...(keysFile && { keysFile }),
    operations,
    ...(raw.limitsPath !== undefined && { limitsPath: raw.limitsPath }),
    ...(docs && { docs }),
    bans: {
      after: raw.bans.after,
      withinMs: raw.bans.within,
      forMs: raw.bans.for,
      maxMs: raw.bans.max,
    },
    addressBucket: raw.addressBucket,
    bodyBytesMax: raw.bodyBytesMax,
    usage: raw.usage,
    ...(raw.cors && { cors: raw.cors }),
    ...(raw.hsts && {
      hsts: { maxAgeSeconds: raw.hsts.maxAge / 1_000, includeSubDomains: raw.hsts.includeSubDomains },
    }),
    trustedProxies: raw.trustedProxies.filter((entry) => entry !== ''),
  };
}

/** The prefix of every operation, for example `/v1`. */
export function basePathOf({ baseUrl }: Pick<RawSettings, 'baseUrl'>): string {
  return new URL(baseUrl).pathname.replace(/\/$/, '');
}

function buildAddress({ host, port }: RawSettings['listen'], tls: Certificate | undefined): ListenAddress {
  return { host, port, ...(tls && { tls }) };
}

/** The name of the upstream in the short form, `upstream`. */
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
  { url, health, host, timeouts }: RawUpstream,
  tls: UpstreamTls | undefined,
): Upstream {
  const { connect, headers, total } = timeouts;
  return {
    name,
    url: new URL(url).origin,
    ...(tls && { tls }),
    health,
    host,
    timeouts: {
      ...(connect !== undefined && { connectMs: connect }),
      ...(headers !== undefined && { headersMs: headers }),
      ...(total !== undefined && { totalMs: total }),
    },
  };
}
