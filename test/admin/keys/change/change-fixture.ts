import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pino } from 'pino';
import { expect, onTestFinished } from 'vitest';
import { stringify } from 'yaml';
import type { Bounds } from '../../../../gateway/shared/timeouts-and-sizes.ts';
import { type AdminReply, askAdmin, makeToken } from '../../../support/admin-client.ts';
import { createGateway } from '../../../support/create-gateway.ts';
import { freshWindows } from '../../../support/fresh-windows.ts';
import { okResponse, startRecordingBackend } from '../../../support/recording-backend.ts';
import { freshPrefix, redisUrl } from '../../../support/redis.ts';
import { settingsOf } from '../../../support/settings-of.ts';
import { tunedBounds } from '../../../support/tuned-bounds.ts';
import { patientStore } from '../../../support/tuning.ts';

const writer = makeToken('write', 'alice');
/** A token that can only read. */
export const reader = makeToken('read', 'eve');

/** A second token that can write. */
export const bob = makeToken('write', 'bob');

export interface ChangedGateway {
  /** Sends a request with a key's secret. @returns the status */
  call(secret: string): Promise<number>;
  /** Sends a request to the admin API as alice, who may write. */
  ask(
    method: string,
    path: string,
    json?: unknown,
    options?: { readonly headers?: Record<string, string>; readonly token?: string },
  ): Promise<AdminReply>;
  readonly adminPort: number;
  readonly publicPort: number;
  reload(overrides: Record<string, unknown>): Promise<void>;
}

/**
 * Starts gateways that share a Redis, or one gateway in memory, which has no key directory. The windows of these gateways never end, and the
 * gateways share one log.
 */
export async function startGateways(
  count: number,
  {
    overrides = {},
    store = 'redis',
    keys,
    redis = { url: redisUrl(), prefix: freshPrefix() },
    bounds = {},
    api,
  }: {
    readonly overrides?: Record<string, unknown>;
    readonly store?: 'redis' | 'memory';
    /** The entries of a keys file. Without entries, all keys are in the directory. */
    readonly keys?: readonly unknown[];
    readonly redis?: { readonly url: string; readonly prefix: string };
    readonly bounds?: Partial<Bounds>;
    /** The API document. */
    readonly api?: object;
  } = {},
) {
  const backend = await startRecordingBackend({
    react: (_request, socket) => socket.write(okResponse('[]')),
  });
  const logged: Record<string, unknown>[] = [];
  const settings = async (own: Record<string, unknown>) =>
    settingsOf({
      upstream: { url: backend.url },
      keys: { directory: true, ...(keys && { file: await fileOf(keys) }) },
      ...(api && { api: await fileOf(api) }),
      plans: { free: { perMinute: 5, perDay: 100 }, pro: { perMinute: 50 }, enterprise: 'custom' },
      admin: { host: '127.0.0.1', port: 0, tokens: [writer.entry, bob.entry, reader.entry] },
      ...(store === 'redis' && { redis }),
      ...overrides,
      ...own,
    });
  const gateways: ChangedGateway[] = [];
  const windowsMs = freshWindows(Date.now());
  for (let index = 0; index < count; index++) {
    const gateway = createGateway({
      settings: await settings({}),
      log: {
        logger: pino({ level: 'info' }, { write: (line) => void logged.push(JSON.parse(line)) }),
        access: () => {},
      },
      bounds: tunedBounds({
        ...patientStore,
        // A request may wait up to `adminResponseTimeoutMs` for its turn. The connection is silent while the request
        // waits.
        writeTimeoutMs: 300_000,
        headersTimeoutMs: 300_000,
        requestTimeoutMs: 300_000,
        adminConnectionsPerSecondMax: 1_000_000,
        adminTurnsPerSecondMax: 1_000_000,
        ...bounds,
        windowsMs,
      }),
    });
    const { listen, admin } = await gateway.start();
    onTestFinished(() => gateway.drain({ graceMs: 0 }));
    gateways.push({
      async call(secret) {
        const headers = { authorization: `Bearer ${secret}` };
        const response = await fetch(`http://127.0.0.1:${listen.port}/v1/pets`, { headers });
        await response.arrayBuffer();
        return response.status;
      },
      ask: (method, path, json, options = {}) =>
        askAdmin(admin.port, `/api/v1${path}`, { method, json, token: writer.token, ...options }),
      adminPort: admin.port,
      publicPort: listen.port,
      reload: async (own) => gateway.reload(await settings(own)),
    });
  }
  onTestFinished(() => backend.close());
  // A 404 for an unknown key shows that the gateway is connected to Redis.
  for (const { ask } of gateways) {
    await expect.poll(async () => (await ask('DELETE', '/keys/none/grant', undefined, bob)).status).toBe(404);
  }
  return { gateways, logged, redis };
}

/** The newest change that a gateway reports. A change that was made on another gateway may arrive a moment later. */
export async function lastChange(gateway: ChangedGateway): Promise<Record<string, unknown>> {
  const { status, body } = await gateway.ask('GET', '/changes?limit=1');
  expect(status).toBe(200);
  return body.changes[0];
}

/** Writes a YAML file, and deletes it after the test. */
export async function fileOf(content: unknown): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'tollgate-'));
  onTestFinished(() => rm(folder, { recursive: true }));
  await writeFile(join(folder, 'part.yaml'), stringify(content));
  return join(folder, 'part.yaml');
}
