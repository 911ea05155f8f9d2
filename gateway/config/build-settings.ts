import { settingsParts } from '../capabilities/lists/configuration.ts';
import type {
  Keys,
  Operation,
  RedisSettings,
  Settings,
  SettingsMembers,
  StatedSettings,
  Upstream,
  UpstreamTls,
} from '../shared/model.ts';
import { statedForm } from '../shared/schema/stated-form.ts';
import {
  hasDirectory,
  type RawSettings,
  type RawUpstream,
  statedSettings,
} from './schema/settings-schema.ts';

/**
 * The parts are validated and have their defaults. A setting needs an entry here only if its effective form differs from its stated form.
 */
export function buildSettings(parts: {
  readonly raw: RawSettings;
  readonly plans: Settings['plans'];
  readonly keys: Keys;
  readonly keysFile: Settings['keysFile'] | undefined;
  readonly operations: readonly Operation[];
  readonly redis: RedisSettings | undefined;
  /** Settings of capabilities whose effective form differs from the stated form. */
  readonly ofParts: Partial<SettingsMembers>;
  readonly upstreamTls: ReadonlyMap<RawUpstream, UpstreamTls>;
  readonly certificates: Partial<Record<'listen' | 'admin', Settings['listen']['tls']>>;
  readonly version: string;
  readonly docs?: Settings['docs'];
}): Settings {
  const { raw, plans, keys, keysFile, operations, redis, ofParts, certificates, version, docs } = parts;
  const { baseUrl: _, upstream: __, api: ___, docsPath: ____, ...asStated } = raw;
  const effective: typeof asStated & SettingsMembers = Object.assign(asStated, ofParts);
  return {
    ...effective,
    version,
    stated: statedForm(statedSettings, raw) as StatedSettings,
    basePath: basePathOf(raw),
    listen: { host: raw.listen.host, port: raw.listen.port, tls: certificates.listen },
    admin: {
      host: raw.admin.host,
      port: raw.admin.port,
      tls: certificates.admin,
      tokens: raw.admin.tokens,
      hosts: raw.admin.hosts,
    },
    redis,
    upstreams: buildUpstreams(raw, parts.upstreamTls),
    plans,
    keys,
    directory: hasDirectory(raw),
    keysFile,
    operations,
    docs,
    bans: {
      after: raw.bans.after,
      withinMs: raw.bans.within,
      forMs: raw.bans.for,
      maxMs: raw.bans.max,
    },
    showsBanReason: raw.bans.showReason,
    thresholds: thresholdsOf(effective),
    hsts: raw.hsts && {
      maxAgeSeconds: raw.hsts.maxAge / 1_000,
      includeSubDomains: raw.hsts.includeSubDomains,
    },
  };
}

/** Ascending. */
function thresholdsOf(settings: SettingsMembers): readonly number[] {
  const wanted = settingsParts.flatMap((part) => part.thresholds?.(settings) ?? []);
  return [...new Set(wanted)].sort((a, b) => a - b);
}

/** For example `/v1`. */
export function basePathOf({ baseUrl }: Pick<RawSettings, 'baseUrl'>): string {
  return new URL(baseUrl).pathname.replace(/\/$/, '');
}

/** The name of the upstream in the setting `upstream`. */
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
  { url, health, host, encodedSlashes, timeouts, failing }: RawUpstream,
  tls: UpstreamTls | undefined,
): Upstream {
  const { connect, headers, total } = timeouts;
  return {
    name,
    url,
    tls,
    health,
    host,
    encodedSlashes,
    timeouts: { connectMs: connect, headersMs: headers, totalMs: total },
    failing: { shareMin: failing.share / 100, failuresMin: failing.failures },
  };
}
