import { hash } from 'node:crypto';
import { setImmediate as nextTurn } from 'node:timers/promises';
import * as z from 'zod';
import { percentText } from '../../keys/guards.ts';
import { keySchema, type RawKey } from '../../keys/key-schema.ts';
import { plansInForce, tableIn } from '../../keys/key-table.ts';
import { limitFieldNames, toLimitFields } from '../../keys/limit-fields.ts';
import { planShape } from '../../keys/plan-schema.ts';
import type {
  Certificate,
  Key,
  LeakSettings,
  Limits,
  Plan,
  PlanWindow,
  Receiver,
  RedisSettings,
  Settings,
  Upstream,
  UpstreamTls,
} from '../../shared/model.ts';
import { isoOf } from '../../shared/schema/dates-and-durations.ts';
import { digestSecret, digestStart } from '../../shared/secrets.ts';
import { webhookEventTypes } from '../../shared/words/event-names.js';
import { policyName, windowIn } from '../../shared/words/limit-names.js';
import { deprecationShown } from '../operations/operations-view.ts';
import { deprecationShape, operationCost } from '../wires/operations.ts';
import {
  count,
  instant,
  integer,
  limitName,
  limitsByField,
  list,
  positive,
  digestStart as shownDigest,
  stated,
  version,
  words,
} from '../wires/response-parts.ts';
import { maskPath, maskUrl } from './mask-url.ts';

const shownWindows = list(
  z.object({
    name: limitName,
    limit: positive,
    group: z.string().optional().describe('The name of the group of operations that the limit counts.'),
    operations: list(z.string()).optional().describe('The operations of the group.'),
  }),
).describe('The windows, with the shortest window first, and then the windows of each group.');

/** A plan in responses. The members `isCustom` and `windows` replace the plan's `custom` and limits. */
export const planShown = z.object({
  ...stated(planShape, ['custom', 'changes', 'groups', 'guard', 'trial', ...limitFieldNames]),
  name: z.string(),
  isCustom: z.boolean().describe('Whether each key on the plan has its own limits.'),
  windows: shownWindows,
  changes: list(z.object({ from: instant, limits: limitsByField }))
    .optional()
    .describe(
      'All configured changes, with the earliest change first. An entry has all limits of the plan that apply from its time on. `windows` has the present limits.',
    ),
  guard: z
    .object({
      before: limitsByField.describe('All limits of the plan before the edit.'),
      refusedAtMost: z
        .string()
        .describe('The share of refused requests at which the plan returns to `before`, such as `3 %`.'),
      untilAt: instant.describe('The end of the guard.'),
    })
    .optional()
    .describe('The guard of an edit that made limits smaller.'),
  reverted: z
    .object({
      sinceAt: instant,
      requests: count.describe('The requests of the plan during the ten minutes before `sinceAt`.'),
      refused: count.describe(
        'The requests of these that a window refused because the edit made it smaller.',
      ),
      edit: limitsByField.describe('The limits of the edit, which do not apply since `sinceAt`.'),
    })
    .optional()
    .describe(
      'Present if the guard has returned the plan to `guard.before`. `windows` then has the limits before the edit.',
    ),
  trial: limitsByField.optional().describe('All limits of the trial. The trial refuses no request.'),
});

const listener = z.object({
  host: z.string(),
  port: count,
  tls: z.object({ file: z.string(), certDigestStart: shownDigest, expiresAt: instant }).optional(),
});

const clientTls = z.object({
  caDigestStart: shownDigest.optional(),
  certDigestStart: shownDigest.optional(),
});

/** The response of `/settings`. */
export const settingsShown = z.object({
  version,
  environment: z.string(),
  basePath: z.string(),
  workers: z.union([positive, z.literal('auto')]).describe('The number of processes that serve requests.'),
  listen: listener,
  admin: listener.extend({
    hosts: list(z.string()),
    tokens: list(z.object({ name: z.string(), may: words('read', 'write'), digestStart: shownDigest })),
  }),
  redis: z
    .object({
      url: z
        .string()
        .optional()
        .describe('The URL without user information and without values of parameters.'),
      cluster: list(z.string()).optional().describe('The servers of a Redis Cluster, instead of `url`.'),
      sentinel: z
        .object({ name: z.string(), hosts: list(z.string()) })
        .optional()
        .describe('The Sentinels that name the master, instead of `url`.'),
      tls: clientTls
        .optional()
        .describe(
          'Present with TLS: the trusted authorities and the client certificate, if they differ from Node’s defaults.',
        ),
      prefix: z.string(),
      onFailure: words('local', 'refuse'),
    })
    .optional()
    .describe('The settings of Redis; absent without Redis.'),
  upstreams: list(
    z.object({
      name: z.string(),
      url: z.string(),
      health: z.string().optional(),
      host: words('keep', 'target'),
      encodedSlashes: words('refuse', 'forward'),
      timeouts: z
        .object({
          connectMs: integer.optional(),
          headersMs: integer.optional(),
          totalMs: integer.optional(),
        })
        .describe('The configured timeouts.'),
      tls: clientTls.extend({ serverName: z.string().optional() }).optional(),
    }),
  ),
  plans: list(planShown),
  operations: list(
    z.object({
      id: z.string(),
      method: z.string(),
      template: z.string(),
      upstream: z.string(),
      stability: words('experimental', 'beta').optional(),
      upgrade: words('websocket').optional(),
      cost: operationCost,
      deprecation: z.object(deprecationShape).optional(),
    }),
  ),
  limitsPath: z.string().optional(),
  leaksPath: z.string().optional(),
  leaks: z.object({
    onLeak: words('revoke', 'report'),
    github: z
      .object({
        keysUrl: z.string().optional(),
        keys: list(
          z.object({
            identifier: z.string(),
            digestStart: z
              .string()
              .describe('The first digits of the SHA-256 digest of the public key in PEM.'),
          }),
        )
          .optional()
          .describe('The public keys of the file; absent if the gateway fetches the keys.'),
      })
      .optional(),
  }),
  selfService: z.object({ rotate: z.boolean() }),
  docsPath: z.string().optional(),
  directory: z
    .boolean()
    .describe('Whether the key directory is on, so that keys can be issued while gateways run.'),
  bans: z.object({ after: integer, withinMs: integer, forMs: integer, maxMs: integer }),
  addressBucket: z.object({ perMinute: integer }),
  bodyBytesMax: integer,
  usage: z.object({ keepDays: integer }),
  notify: list(
    z.object({
      id: z
        .string()
        .describe('The id of the receiver: the first 12 hex digits of the SHA-256 digest of its URL.'),
      url: z.string().describe('The URL without its path and parameters, which may contain a token.'),
      events: list(words(...webhookEventTypes)),
      at: list(positive).describe('The percentages of `quota.threshold`.'),
      keys: list(z.string()).optional().describe('The receiver gets only events about these keys.'),
      plans: list(z.string())
        .optional()
        .describe('The receiver gets only events about these plans and their keys.'),
      operations: list(z.string())
        .optional()
        .describe('The receiver gets only events about these operations.'),
      secretDigestStarts: list(shownDigest),
    }),
  ).describe('The receivers of webhooks.'),
  cors: z.object({ origins: list(z.string()) }).optional(),
  hsts: z.object({ maxAgeSeconds: integer, includeSubDomains: z.boolean() }).optional(),
  trustedProxies: list(z.string()),
  keysFile: z
    .string()
    .optional()
    .describe(
      'The keys file, relative to the folder of the configuration; absent if all keys are in the key directory.',
    ),
  keys: list(
    z.object({
      ...stated(keySchema.shape, ['id', 'plan', 'limits', 'disabled', 'secrets']),
      id: z.string(),
      plan: z.string(),
      disabled: z.boolean(),
      windows: shownWindows,
      secrets: list(z.object({ digestStart: shownDigest, expiresAt: instant.optional() })),
    }),
  ),
});

type SettingsShown = z.output<typeof settingsShown>;

/**
 * The number of keys that are handled in one turn of the event loop, so that other requests wait only for
 * milliseconds.
 */
const keysPerTurn = 500;

/**
 * Returns the effective configuration as JSON, with all defaults and without secrets. Secrets and PEM files are shown
 * by the first digits of their digests. Credentials in URLs are masked. The order is always the same, so that two
 * responses can be compared. Keys, plans and operations are sorted by name. Upstreams keep their configured order,
 * because the first is the default.
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

/** Returns all members of the `/settings` response except the keys. */
export function settingsMembers(settings: Settings): Omit<SettingsShown, 'keys'> {
  const { version, environment, basePath, workers, listen, admin, redis, bans, addressBucket, hsts } =
    settings;
  const { bodyBytesMax, usage, trustedProxies, cors, limitsPath, leaksPath, selfService, docs, directory } =
    settings;
  return {
    version,
    environment,
    basePath,
    workers,
    listen: { host: listen.host, port: listen.port, tls: tlsView(listen.tls) },
    admin: {
      host: admin.host,
      port: admin.port,
      tls: tlsView(admin.tls),
      hosts: admin.hosts,
      tokens: admin.tokens.map(({ name, may, sha256 }) => ({ name, may, digestStart: digestStart(sha256) })),
    },
    redis: redis && redisView(redis),
    upstreams: settings.upstreams.map(upstreamView),
    plans: [...plansInForce(settings).values()].sort((a, b) => compare(a.name, b.name)).map(planView),
    operations: settings.operations.toSorted((a, b) => compare(a.id, b.id)).map(operationView),
    limitsPath,
    leaksPath,
    leaks: leaksView(settings.leaks),
    selfService,
    docsPath: docs?.path,
    directory,
    bans,
    addressBucket,
    bodyBytesMax,
    usage,
    notify: settings.notify.map(receiverView),
    cors,
    hsts,
    trustedProxies,
    keysFile: settings.keysFile?.path,
  };
}

function redisView({
  url,
  cluster,
  sentinel,
  tls,
  prefix,
  onFailure,
}: RedisSettings): SettingsShown['redis'] {
  return {
    url: url === undefined ? undefined : maskUrl(url),
    cluster: cluster?.map(maskUrl),
    sentinel: sentinel && { name: sentinel.name, hosts: sentinel.hosts },
    tls: tls && clientTlsView(tls),
    prefix,
    onFailure,
  };
}

function leaksView({ onLeak, github }: LeakSettings): SettingsShown['leaks'] {
  const keys = github?.keys?.map(({ identifier, pem }) => ({
    identifier,
    digestStart: digestStart(hash('sha256', pem, 'hex')),
  }));
  return { onLeak, github: github && { keysUrl: github.keysUrl, keys } };
}

function receiverView({ id, url, secrets, ...shown }: Receiver): SettingsShown['notify'][number] {
  const secretDigestStarts = secrets.map((secret) => digestStart(digestSecret(secret)));
  return { id, url: maskPath(url), ...shown, secretDigestStarts };
}

function clientTlsView({
  ca,
  clientCertificate,
}: Pick<UpstreamTls, 'ca' | 'clientCertificate'>): z.output<typeof clientTls> {
  return {
    caDigestStart: ca === undefined ? undefined : digestStart(hash('sha256', ca)),
    certDigestStart: clientCertificate && digestStart(hash('sha256', clientCertificate.cert)),
  };
}

function operationView({
  deprecation,
  ...operation
}: Settings['operations'][number]): SettingsShown['operations'][number] {
  return { ...operation, deprecation: deprecation && deprecationShown(deprecation) };
}

function upstreamView({ tls, ...upstream }: Upstream): SettingsShown['upstreams'][number] {
  return { ...upstream, tls: tls && { ...clientTlsView(tls), serverName: tls.serverName } };
}

function tlsView(tls: Certificate | undefined): z.output<typeof listener>['tls'] {
  if (tls === undefined) return undefined;
  const { file, cert, notAfterMs } = tls;
  return { file, certDigestStart: digestStart(hash('sha256', cert)), expiresAt: isoOf(notAfterMs) };
}

/** Returns a plan in the form of a response. */
export function planView({
  name,
  isCustom,
  limits,
  changes,
  guard,
  reverted,
  trial,
  ...rest
}: Plan): z.output<typeof planShown> {
  const later = changes?.map((change) => ({
    from: isoOf(change.fromMs),
    limits: toLimitFields(change.limits),
  }));
  return {
    ...{ name, isCustom, windows: windowsView(limits), ...rest, changes: later },
    trial: trial && toLimitFields(trial),
    guard: guard && {
      before: toLimitFields(guard.before),
      refusedAtMost: percentText(guard.refusedShareMax),
      untilAt: isoOf(guard.untilMs),
    },
    reverted: reverted && {
      sinceAt: isoOf(reverted.sinceMs),
      requests: reverted.requests,
      refused: reverted.refused,
      edit: toLimitFields(reverted.edit),
    },
  };
}

/** Returns limits as the list of windows that all responses use. */
export function windowsView(limits: Limits): z.output<typeof shownWindows> {
  return limits.map(({ window, max, group, operations }) => ({
    name: policyName(window, group),
    limit: max,
    ...(group !== undefined && { group, operations }),
  }));
}

/** Returns the limits in a list of windows of a response. */
export function limitsInView(windows: z.output<typeof shownWindows>): Limits {
  return windows.map(({ name, limit, group, operations }) =>
    group === undefined
      ? { window: name as PlanWindow, max: limit }
      : { window: windowIn(name) as PlanWindow, max: limit, group, operations },
  );
}

/** Returns a key as the operator wrote it, with the effective limits and operations, which may come from its plan. */
function keyView(
  { limits: _, operations: __, disabled, secrets, ...stated }: RawKey,
  { limits, operations }: Key,
): SettingsShown['keys'][number] {
  return {
    ...stated,
    windows: windowsView(limits),
    operations,
    disabled,
    secrets: secrets
      .toSorted((a, b) => compare(a.sha256, b.sha256))
      .map(({ sha256, expires }) => ({
        digestStart: digestStart(sha256),
        expiresAt: isoOf(expires),
      })),
  };
}

/** Compares two names by code units, so that the order does not depend on the machine's locale. */
function compare(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0;
}
