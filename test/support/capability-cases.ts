import { existsSync, readdirSync } from 'node:fs';
import type { Notice } from '../../gateway/fleet/kinds/kinds.ts';
import type { RedisConnection } from '../../gateway/redis/redis-connection.ts';
import type { RedisKeyKind } from '../../gateway/redis/redis-keys.ts';
import type { Limiter } from '../../gateway/request/limit/limiter.ts';
import type { Bounds } from '../../gateway/shared/timeouts-and-sizes.ts';
import type { makeKey } from './gateway-process.ts';

type Members = Readonly<Record<string, unknown>>;

/** Rows that capabilities add to tables of tests: the file `cases.ts` in the folder of a capability's tests exports them as `cases`. */
export interface CapabilityCases {
  /** Pairs of configurations that differ in a setting of the capability, by the path of the setting (`every-setting.test.ts`). */
  readonly settings?: Readonly<Record<string, readonly [before: Members, after: Members]>>;
  /** Files that these configurations name. */
  readonly files?: Readonly<Record<string, string>>;
  /** A setting with secrets (`secrets-in-settings.test.ts`). */
  readonly secretSetting?: SecretSetting;
  /** Settings that are a problem without Redis: what they are, the path of the problem, and its message (`without-redis.test.ts`). */
  readonly needRedis?: readonly (readonly [what: string, settings: Members, path: string, problem: string])[];
  /** The settings of a minimal configuration (`load-settings.test.ts`). */
  readonly defaults?: Members;
  /** Pairs of operations that differ in a member of the capability, by its name. */
  readonly operations?: Readonly<Record<string, readonly [before: Members, after: Members]>>;
  /** Edits of a configuration, and the texts about them (`describe-edit.test.ts`). The plans are those of this test. */
  readonly edits?: readonly [name: string, before: object, after: object, texts: string[]][];
  /** Notices of each kind of the capability. `leaky` is a text with secrets (`event-body.test.ts`). */
  readonly notices?: (values: { readonly leaky: string; readonly atMs: number }) => readonly Notice[];
  /** Plans with which each metric of the capability has a value (`metrics.test.ts`). */
  readonly plans?: Members;
  /** Effective settings with which each metric of the capability has a value (`metrics.test.ts`). */
  readonly effective?: Members;
  /** Pages of operators without data of the capability, each as in `admin-pages-browser.test.ts`. */
  readonly pages?: readonly PageCase[];
  /** Events of webhooks that the capability causes (`webhooks.test.ts`). */
  readonly webhookEvents?: readonly WebhookCase[];
  readonly redisKeys?: RedisKeyCases;
  /** Uses of several keys in one script, each as the file below `gateway/` and the use. The keys are in one slot (`scripts.test.ts`). */
  readonly severalKeys?: readonly string[];
}

interface SecretSetting {
  readonly name: string;
  /** The settings that a valid configuration with this setting has. */
  readonly settings?: Members;
  /** Parts of the setting that are shown, because they are valid with every text. */
  readonly shownAsStated?: readonly string[];
  /** A valid URL in the setting. */
  url(secret: string): string;
  /** The content of a secret file. */
  readonly secretFile?: string;
}

interface RedisKeyCases {
  readonly kinds: Readonly<Record<string, RedisKeyKind>>;
  /** Members of the configuration with which a gateway writes the keys. `limits` are limits of the plan `all`. */
  readonly config?: (limits: Members) => {
    readonly plan?: Members;
    readonly settings?: Members;
    /** The contents of files that the settings name. */
    readonly files?: Readonly<Record<string, string>>;
  };
  /** Paths that a client with a key requests with GET, so that the gateway writes the keys. */
  readonly read?: readonly string[];
  /** Writes the largest possible keys. @param keyId the id of a key with counts */
  fill?(place: {
    readonly connection: RedisConnection;
    readonly limiter: Limiter;
    readonly bounds: Bounds;
    readonly keyId: string;
  }): Promise<void>;
}

/** The address of a page, the elements that it shows when its figures have arrived, and the API path that it requests repeatedly. */
export type PageCase = readonly [path: string, parts: readonly [string, ...string[]], asked: string];

/** An event of webhooks, which two processes must report once. */
interface WebhookCase {
  readonly what: string;
  readonly type: string;
  readonly plans?: Members;
  readonly bounds?: Partial<Bounds>;
  readonly key: ReturnType<typeof makeKey>;
  cause(by: {
    /** Sends a request with the key to one of two gateways. */
    request(index: 0 | 1): Promise<void>;
    /** Changes something over the admin API. */
    change(method: string, path: string, json?: unknown): Promise<void>;
  }): Promise<void>;
  readonly data: Members;
}

/** The result of one measurement, for its rows in the list of faults. */
export interface Finding {
  readonly figure: string;
  /** Whether the gateway met its requirements. Times are printed but not judged. */
  readonly holds: boolean;
}

/** A measurement of `npm run faults`. The file `faults.ts` in the folder of a capability's tests exports its `measurements`. */
export interface Measurement {
  readonly rows: string;
  readonly what: string;
  readonly measure: () => Promise<Finding>;
}

/** A measurement of `npm run bench`. The file `bench.ts` in the folder of a capability's tests exports its `parts`. */
export interface BenchPart {
  /** The value of `--only`. */
  readonly name: string;
  readonly title: string;
  /** The columns of the table. */
  readonly head: readonly string[];
  measure(options: { readonly quick: boolean }): readonly (readonly string[])[];
}

const folder = new URL('../capabilities/', import.meta.url);

/** The cases of all capabilities of this repository. */
export async function capabilityCases(): Promise<readonly CapabilityCases[]> {
  return (await filesOfCapabilities<{ cases: CapabilityCases }>('cases.ts')).map(({ cases }) => cases);
}

/** The measurements of all capabilities. */
export async function measurementsOfCapabilities(): Promise<readonly Measurement[]> {
  const files = await filesOfCapabilities<{ measurements: readonly Measurement[] }>('faults.ts');
  return files.flatMap(({ measurements }) => measurements);
}

/** The measurements of all capabilities for the benchmark. */
export async function benchPartsOfCapabilities(): Promise<readonly BenchPart[]> {
  return (await filesOfCapabilities<{ parts: readonly BenchPart[] }>('bench.ts')).flatMap(
    ({ parts }) => parts,
  );
}

function filesOfCapabilities<Exports>(file: string): Promise<readonly Exports[]> {
  const names = existsSync(folder) ? readdirSync(folder) : [];
  const files = names.map((name) => new URL(`${name}/${file}`, folder)).filter((url) => existsSync(url));
  return Promise.all(files.map((url) => import(url.href)));
}
