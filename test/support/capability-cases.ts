import { existsSync, readdirSync } from 'node:fs';
import type { Notice } from '../../gateway/fleet/kinds/kinds.ts';
import type { RedisConnection } from '../../gateway/redis/redis-connection.ts';
import type { RedisKeyKind } from '../../gateway/redis/redis-keys.ts';
import type { Limiter } from '../../gateway/request/limit/limiter.ts';
import type { Bounds } from '../../gateway/shared/timeouts-and-sizes.ts';

type Members = Readonly<Record<string, unknown>>;

/** Rows that capabilities add to tables of tests: the file `cases.ts` in the folder of a capability's tests exports them as `cases`. */
export interface CapabilityCases {
  /** Pairs of configurations that differ in a setting of the capability, by the path of the setting (`every-setting.test.ts`). */
  readonly settings?: Readonly<Record<string, readonly [before: Members, after: Members]>>;
  /** Pairs of operations that differ in a member of the capability, by its name. */
  readonly operations?: Readonly<Record<string, readonly [before: Members, after: Members]>>;
  /** Edits of a configuration, and the texts about them (`describe-edit.test.ts`). The plans are those of this test. */
  readonly edits?: readonly [name: string, before: object, after: object, texts: string[]][];
  /** Notices of each kind of the capability. `leaky` is a text with secrets (`event-body.test.ts`). */
  readonly notices?: (values: { readonly leaky: string; readonly atMs: number }) => readonly Notice[];
  /** Plans with which each metric of the capability has a value (`metrics.test.ts`). */
  readonly plans?: Members;
  readonly redisKeys?: RedisKeyCases;
}

interface RedisKeyCases {
  readonly kinds: Readonly<Record<string, RedisKeyKind>>;
  /** The places where a script, or its caller, uses several keys with the same hash tag (`scripts.test.ts`). */
  readonly inOneSlot?: readonly string[];
  /** The page with their table. */
  readonly page: URL;
  /** Members of the configuration with which a gateway writes the keys. `limits` are limits of the plan `all`. */
  readonly config?: (limits: Members) => { readonly plan?: Members; readonly settings?: Members };
  /** Paths that a client with a key reads, so that the gateway writes the keys. */
  readonly read?: readonly string[];
  /** Writes the largest possible keys. @param keyId the id of a key with counts */
  fill?(place: {
    readonly connection: RedisConnection;
    readonly limiter: Limiter;
    readonly bounds: Bounds;
    readonly keyId: string;
  }): Promise<void>;
}

const folder = new URL('../capabilities/', import.meta.url);

/** The cases of all capabilities of this repository. */
export async function capabilityCases(): Promise<readonly CapabilityCases[]> {
  const names = existsSync(folder) ? readdirSync(folder) : [];
  const files = names.map((name) => new URL(`${name}/cases.ts`, folder)).filter((file) => existsSync(file));
  return Promise.all(files.map(async (file) => (await import(file.href)).cases));
}
