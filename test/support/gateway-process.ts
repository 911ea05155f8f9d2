import { type ChildProcess, spawn } from 'node:child_process';
import { createHash, randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { mkdtemp, rename, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { stringify } from 'yaml';

const startTimeoutMs = 20_000;

export const plans = {
  free: { perMinute: 60, perDay: 1_000 },
  pro: { perMinute: 300, perDay: 10_000 },
  business: { perMinute: 1_000, perDay: 100_000 },
  enterprise: 'custom',
};

export interface KeyEntry {
  readonly id: string;
  readonly plan: string;
  readonly limits?: { readonly perMinute: number; readonly perDay: number };
  readonly disabled?: boolean;
  readonly secrets: readonly { readonly sha256: string; readonly expires?: string }[];
}

/** A key with a secret of its own; tests make their secrets. */
export function makeKey(entry: Partial<Omit<KeyEntry, 'secrets'>> = {}): { entry: KeyEntry; secret: string } {
  const secret = `test-${randomUUID()}`;
  const sha256 = createHash('sha256').update(secret).digest('hex');
  return { secret, entry: { id: `key-${randomUUID()}`, plan: 'free', ...entry, secrets: [{ sha256 }] } };
}

/** A key that states its own limits. */
export function makeCustomKey(perMinute: number, perDay: number) {
  return makeKey({ plan: 'enterprise', limits: { perMinute, perDay } });
}

export interface GatewayProcess {
  /** With the base path, for example `http://127.0.0.1:41234/v1`. */
  readonly baseUrl: string;
  readonly port: number;
  readonly adminUrl: string;
  readonly configDir: string;
  readonly child: ChildProcess;
  /** Every line of the log so far. */
  readonly lines: Record<string, unknown>[];
  /** Waits for a line of the log that satisfies the test. */
  line(test: (line: Record<string, unknown>) => boolean): Promise<Record<string, unknown>>;
  /** Replaces the configuration file as an editor does: a new file is renamed over it. */
  editConfig(config: Record<string, unknown> | string): Promise<void>;
  /** SIGTERM and the end; gives the exit code. */
  stop(signal?: NodeJS.Signals): Promise<number | null>;
}

/** The main configuration of a gateway under test; `overrides` replace its fields. */
export function testConfig(overrides: Record<string, unknown>): Record<string, unknown> {
  return {
    environment: 'test',
    baseUrl: 'http://127.0.0.1/v1',
    listen: { host: '127.0.0.1', port: 0 },
    admin: { host: '127.0.0.1', port: 0 },
    plans,
    keys: [],
    api: fileURLToPath(new URL('../../config/openapi.yaml', import.meta.url)),
    addressBucket: { perMinute: 1_000_000 },
    ...overrides,
  };
}

/** Starts a real gateway process on free ports, with a configuration directory of its own. */
export async function startGateway(config: Record<string, unknown>): Promise<GatewayProcess> {
  const configDir = await mkdtemp(join(tmpdir(), 'tollgate-'));
  const configFile = join(configDir, 'gateway.yaml');
  await writeFile(configFile, stringify(config));

  const main = fileURLToPath(new URL('../../gateway/main.ts', import.meta.url));
  const child = spawn(process.execPath, [main, '--config', configFile], {
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  const lines: Record<string, unknown>[] = [];
  const waiting = new Set<() => void>();
  let errors = '';
  child.stderr.on('data', (chunk) => {
    errors += chunk;
  });
  createInterface({ input: child.stdout }).on('line', (text) => {
    lines.push(JSON.parse(text));
    for (const look of waiting) look();
  });

  function line(test: (line: Record<string, unknown>) => boolean): Promise<Record<string, unknown>> {
    return new Promise((resolve, reject) => {
      const giveUp = () => {
        waiting.delete(look);
        reject(
          new Error(
            `no such line; the log was\n${lines.map((l) => JSON.stringify(l)).join('\n')}\n${errors}`,
          ),
        );
      };
      const timer = setTimeout(giveUp, startTimeoutMs);
      child.once('exit', giveUp);
      const look = () => {
        const found = lines.find(test);
        if (found === undefined) return;
        waiting.delete(look);
        clearTimeout(timer);
        child.off('exit', giveUp);
        resolve(found);
      };
      waiting.add(look);
      look();
    });
  }

  const started = (await line((entry) => entry.msg === 'the gateway listens')) as unknown as {
    listen: { port: number };
    admin: { port: number };
  };

  return {
    baseUrl: `http://127.0.0.1:${started.listen.port}/v1`,
    port: started.listen.port,
    adminUrl: `http://127.0.0.1:${started.admin.port}`,
    configDir,
    child,
    lines,
    line,
    async editConfig(next) {
      const draft = join(configDir, '.gateway.yaml.swp');
      await writeFile(draft, typeof next === 'string' ? next : stringify(next));
      await rename(draft, configFile);
    },
    async stop(signal = 'SIGTERM') {
      if (child.exitCode === null && child.signalCode === null) {
        child.kill(signal);
        await once(child, 'exit');
      }
      await rm(configDir, { recursive: true, force: true });
      return child.exitCode;
    },
  };
}
