import { hash } from 'node:crypto';
import { setImmediate as nextTurn } from 'node:timers/promises';
import type * as z from 'zod';
import { planMembers, settingsParts } from '../../capabilities/lists/configuration.ts';
import { adminTokenSchema } from '../../config/schema/settings-schema.ts';
import type { RawKey } from '../../keys/key-schema.ts';
import { plansInForce, tableIn } from '../../keys/key-table.ts';
import { toLimitFields } from '../../keys/limits/limit-fields.ts';
import type {
  Certificate,
  Key,
  Limits,
  Plan,
  PlanWindow,
  Settings,
  StatedListener,
  StatedSettings,
  Upstream,
  UpstreamTls,
} from '../../shared/model.ts';
import { isoOf } from '../../shared/schema/dates-and-durations.ts';
import { statedForm } from '../../shared/schema/stated-form.ts';
import { digestStart } from '../../shared/secrets.ts';
import { policyName, windowIn } from '../../shared/words/limit-names.js';
import { deprecationShown } from '../operations/operations-view.ts';
import type { planShown, shownWindows } from '../wires/plans/plans.ts';
import type { settingsShown } from '../wires/settings.ts';

type SettingsShown = z.output<typeof settingsShown>;

/**
 * The number of keys that are handled in one turn of the event loop, so that other requests wait only for
 * milliseconds.
 */
const keysPerTurn = 500;

/**
 * Returns the effective configuration as JSON. Settings are shown as they are stated, with all defaults, and masked by their marks. Members
 * about the content of their files are added. Plans, operations and keys have forms of their own. The order is always the same, so that two
 * responses can be compared. Keys, plans and operations are sorted by name. Upstreams keep their configured order, because the first is the
 * default.
 */
export async function settingsText(
  settings: Settings,
  { withKeys = true }: { readonly withKeys?: boolean } = {},
): Promise<string> {
  const keys = tableIn(settings.keys);
  const texts: string[] = [];
  for (const stated of withKeys ? keys.stated() : []) {
    const key = keys.get(stated.id);
    if (key !== undefined) texts.push(JSON.stringify(keyView(stated, key)));
    if (texts.length % keysPerTurn === 0) await nextTurn();
  }
  return `${JSON.stringify(settingsMembers(settings)).slice(0, -1)},"keyCount":${keys.size},"keys":[${texts.join(',')}]}`;
}

/** Returns all members of the `/settings` response except the keys and their number. */
export function settingsMembers(settings: Settings): Omit<SettingsShown, 'keys' | 'keyCount'> {
  const { version, stated, listen, admin, redis, directory } = settings;
  const { upstream: _, upstreams: __, ...asStated } = stated;
  return {
    version,
    ...asStated,
    ...Object.assign({}, ...settingsParts.map((part) => part.shown?.(settings, stated))),
    listen: { ...stated.listen, tls: tlsView(stated.listen, listen.tls) },
    admin: {
      ...stated.admin,
      tls: tlsView(stated.admin, admin.tls),
      tokens: admin.tokens.map((token) => Object(statedForm(adminTokenSchema, token))),
    },
    redis: redis && {
      ...Object(stated.redis),
      prefix: redis.prefix,
      tls: redis.tls && digestsOf(redis.tls),
    },
    upstreams: settings.upstreams.map((upstream) => upstreamView(stated, upstream)),
    plans: [...plansInForce(settings).values()].sort((a, b) => compare(a.name, b.name)).map(planView),
    operations: settings.operations.toSorted((a, b) => compare(a.id, b.id)).map(operationView),
    directory,
    ...shownByParts(settings),
    keysFile: settings.keysFile?.path,
  };
}

function tlsView(
  { tls: stated }: StatedListener,
  tls: Certificate | undefined,
): SettingsShown['listen']['tls'] {
  if (tls === undefined) return undefined;
  const { cert, notAfterMs } = tls;
  return { ...stated, certDigestStart: digestStart(hash('sha256', cert)), expiresAt: isoOf(notAfterMs) };
}

function upstreamView(
  { upstream, upstreams }: StatedSettings,
  { name, tls }: Upstream,
): SettingsShown['upstreams'][number] {
  const stated = Object(upstream ?? Object(upstreams)[name]);
  return { name, ...stated, tls: tls && { ...stated.tls, ...digestsOf(tls) } };
}

/** The digests of the files for connections on which the gateway is the TLS client. */
function digestsOf({ ca, clientCertificate }: Pick<UpstreamTls, 'ca' | 'clientCertificate'>) {
  return {
    caDigestStart: ca === undefined ? undefined : digestStart(hash('sha256', ca)),
    certDigestStart: clientCertificate && digestStart(hash('sha256', clientCertificate.cert)),
  };
}

/** The settings of capabilities that are not shown as they are stated. */
function shownByParts(settings: Settings): Readonly<Record<string, unknown>> {
  return Object.assign({}, ...settingsParts.map((part) => part.shown?.(settings, settings.stated)));
}

function operationView({
  deprecation,
  ...operation
}: Settings['operations'][number]): SettingsShown['operations'][number] {
  return { ...operation, deprecation: deprecation && deprecationShown(deprecation) };
}

export function planView({
  name,
  isCustom,
  limits,
  concurrent,
  operations,
  changes,
  trial,
  ...ofCapabilities
}: Plan): z.output<typeof planShown> {
  const later = changes?.map((change) => ({
    from: isoOf(change.fromMs),
    limits: toLimitFields(change.limits),
  }));
  return {
    ...{ name, isCustom, windows: windowsView(limits), concurrent, operations, changes: later },
    trial: trial && toLimitFields(trial),
    ...Object.assign({}, ...planMembers.map((member) => member.shown(ofCapabilities))),
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

/** By code units, so that the order does not depend on the machine's locale. */
function compare(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0;
}
