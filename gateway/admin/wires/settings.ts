import * as z from 'zod';
import type { ShownSchema } from '../../capabilities/interfaces/configuration.ts';
import { settingsShownSchemas } from '../../capabilities/lists/schemas.ts';
import { statedSettings } from '../../config/schema/settings-schema.ts';
import { keySchema } from '../../keys/key-schema.ts';
import {
  components,
  count,
  instant,
  list,
  digestStart as shownDigest,
  stated,
  version,
  words,
} from '../../keys/response-parts.ts';
import { shownMembers } from '../../keys/shown-settings.ts';
import { defineWire } from '../../shared/http/wire.ts';
import { type Parts, partsOf } from '../../shared/schema/marks.ts';
import { oneOf, queryOf } from '../../shared/schema/query-parameters.ts';
import { deprecationShape, operationCost } from './operations.ts';
import { planShown, shownWindows } from './plans/plans.ts';

/** Returns the shown members of the mapping at a path of the settings, or of each entry if a list is at this path. */
function membersAt(...path: readonly string[]): Record<string, z.ZodType> {
  const parts = partsAt(statedSettings, path);
  if (parts.kind === 'members') return shownMembers(parts.of);
  throw new Error(`${path.join('.')} is no mapping`);
}

function partsAt(schema: z.ZodType, path: readonly string[]): Parts {
  const parts = partsOf(schema);
  if (parts.kind === 'inner' || parts.kind === 'entries') return partsAt(parts.of, path);
  const [step, ...rest] = path;
  const member = parts.kind === 'members' && step !== undefined ? parts.of[step] : undefined;
  return member === undefined ? parts : partsAt(member, rest);
}

const listenerTls = z
  .object({ ...membersAt('listen', 'tls'), certDigestStart: shownDigest, expiresAt: instant })
  .optional();

const clientDigests = {
  caDigestStart: shownDigest.optional(),
  certDigestStart: shownDigest.optional(),
};

const { upstream: _, upstreams: __, ...asStated } = shownMembers(statedSettings.shape);

const shownByParts: Readonly<Record<string, z.ZodType>> = Object.fromEntries(
  Object.entries<ShownSchema>(settingsShownSchemas).map(([name, schemaOf]) => [
    name,
    schemaOf(membersAt(name)),
  ]),
);

/**
 * The response of `/settings`: the settings as they are stated, with facts that the gateway has read from the files that they name. A new
 * setting needs no entry here.
 */
export const settingsShown = z
  .object({
    ...asStated,
    ...shownByParts,
    version,
    listen: z.object({ ...membersAt('listen'), tls: listenerTls }),
    admin: z.object({
      ...membersAt('admin'),
      tls: listenerTls,
      tokens: list(z.object(membersAt('admin', 'tokens'))),
    }),
    redis: z
      .object({
        ...membersAt('redis'),
        tls: z
          .object(clientDigests)
          .optional()
          .describe('Present with TLS: digests of `ca` and `cert`, if they are set.'),
        prefix: z.string(),
      })
      .optional()
      .describe('Absent without Redis.'),
    upstreams: list(
      z.object({
        name: z.string(),
        ...membersAt('upstream'),
        tls: z.object({ ...membersAt('upstream', 'tls'), ...clientDigests }).optional(),
      }),
    ).describe('A single `upstream` has the name `default`.'),
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
    directory: z.boolean().describe('Whether the key directory is on.'),
    keysFile: z
      .string()
      .optional()
      .describe(
        'The path of the file with the keys, absolute or relative to the folder of the configuration; absent if all keys are in the key directory.',
      ),
    keyCount: count.describe('The number of keys of the configuration.'),
    keys: list(
      z.object({
        ...stated(keySchema.shape, ['id', 'plan', 'limits', 'operations', 'disabled', 'secrets']),
        id: z.string(),
        plan: z.string(),
        operations: list(z.string())
          .optional()
          .describe('The operations that the key may call; absent if the key may call every operation.'),
        disabled: z.boolean(),
        windows: shownWindows,
        secrets: list(z.object({ digestStart: shownDigest, expiresAt: instant.optional() })),
      }),
    ).describe('The keys of the configuration, sorted by id; empty with `keys=none`.'),
  })
  .describe(
    'The settings, with facts that the gateway has read from their files. The reference of the settings describes the members that have the name of a setting.',
  )
  .register(components, { id: 'Settings' });

export const getSettingsWire = defineWire({
  method: 'GET',
  path: '/settings',
  operationId: 'getSettings',
  tag: 'Configuration',
  summary: 'The effective configuration',
  description:
    'Every setting as the configuration states it, including defaults, except the default timeouts of upstreams (`/upstreams`). Secrets are masked. A duration has the largest unit that fits, such as `1m`. The order is always the same, so that two responses can be compared.',
  query: queryOf({
    keys: oneOf(['all', 'none']).default('all').describe('Whether the response has the keys.'),
  }),
  answers: { 200: { description: 'The present settings.', schema: settingsShown } },
});
