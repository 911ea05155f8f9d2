import { type ChildProcess, spawn } from 'node:child_process';
import { createHash, randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { mkdtemp, rename, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { stringify } from 'yaml';
import type { StatedKey } from '../../gateway/keys/key-schema.ts';
import type { Tuning } from './tuning.ts';

const startTimeoutMs = 120_000;

export const plans = {
  free: { perMinute: 60, perDay: 1_000 },
  pro: { perMinute: 300, perDay: 10_000 },
  business: { perMinute: 1_000, perDay: 100_000 },
  enterprise: 'custom',
};

/** An entry of the keys file. */
export interface KeyEntry extends Partial<StatedKey> {
  readonly id: string;
  readonly plan: string;
  readonly secrets: readonly { readonly sha256: string; readonly expires?: string }[];
}

/** A key's entry for the configuration, with its random secret. */
export function makeKey(
  entry: Partial<Omit<KeyEntry, 'secrets'>> = {},
  secret = `test-${randomUUID()}`,
): { entry: KeyEntry; secret: string } {
  const sha256 = createHash('sha256').update(secret).digest('hex');
  return { secret, entry: { id: `key-${randomUUID()}`, plan: 'free', ...entry, secrets: [{ sha256 }] } };
}

/** A key with its own limits. The plan of the key has no limits. */
export function makeCustomKey(perMinute: number, perDay: number, secret?: string) {
  return makeKey({ plan: 'enterprise', limits: { perMinute, perDay } }, secret);
}

export interface RunningGateway {
  /** The URL with the base path, for example `http://127.0.0.1:41234/v1`. */
  readonly baseUrl: string;
  readonly port: number;
  readonly adminUrl: string;
  readonly configDir: string;
  /** Every line of the log so far. */
  readonly lines: Record<string, unknown>[];
  /** Everything that the gateway has written so far to standard output and standard error. */
  output(): string;
  /** Resolves with the first log line that passes `test`, now or later. */
  line(test: (line: Record<string, unknown>) => boolean): Promise<Record<string, unknown>>;
  /** Replaces the configuration file as an editor does (a new file is renamed over the old file), or as Kubernetes does. */
  editConfig(config: Record<string, unknown> | string): Promise<void>;
  /** Moves the gateway's clock forward by `tuning.clockLeapMs`. */
  leapClock(): void;
  /**
   * Sends a signal, by default SIGTERM. Waits until the process has exited. After any signal except SIGKILL, also waits for the rest of the
   * output.
   * @returns the exit code
   */
  stop(signal?: NodeJS.Signals): Promise<number | null>;
}

export interface GatewayProcess extends RunningGateway {
  readonly child: ChildProcess;
}

/** The main configuration of a gateway under test. `overrides` replaces fields. */
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

export interface GatewayStart {
  /** Tuning that no configuration can set. With tuning, `tuned-gateway.ts` starts in place of the gateway's own main file. */
  readonly tuning?: Tuning;
  /** `mounted`: symbolic links lead to the file, as in a Kubernetes mount, and an edit swaps one of the links. */
  readonly layout?: 'plain' | 'mounted';
  /** Further files of the configuration. The name of each member is a file name. A text is the whole content of its file. */
  readonly files?: Readonly<Record<string, unknown>>;
}

/**
 * A gateway sets V8 flags, and V8 rejects cached code that was compiled with other flags. A gateway therefore needs its own compile cache.
 */
const ownCompileCache = process.env.NODE_COMPILE_CACHE && {
  NODE_COMPILE_CACHE: `${process.env.NODE_COMPILE_CACHE}-gateway`,
};

/** Starts a real gateway process on free ports with its own configuration directory. */
export async function startGateway(
  config: Record<string, unknown>,
  { tuning, ...start }: GatewayStart = {},
): Promise<GatewayProcess> {
  const { configDir, configFile, edit } = await writeConfig(config, start);

  const entry = tuning === undefined ? '../../gateway/main.ts' : './tuned-gateway.ts';
  const main = fileURLToPath(new URL(entry, import.meta.url));
  const child = spawn(process.execPath, [main, '--config', configFile], {
    stdio: ['ignore', 'pipe', 'pipe'],
    env: { ...process.env, ...ownCompileCache, TEST_TUNING: JSON.stringify(tuning ?? {}) },
  });
  const log = createLineLog();
  let errors = '';
  child.stderr.on('data', (chunk) => {
    errors += chunk;
  });
  createInterface({ input: child.stdout }).on('line', (text) => log.add(JSON.parse(text)));
  // The last lines of the log may arrive after the process has ended.
  child.once('close', () => log.end(errors));
  const { lines, line } = log;
  // A test that did not expect this would otherwise see only broken connections.
  child.once('close', (code) => {
    if (code !== 0 && code !== null)
      console.error(`A gateway ended with exit code ${code}:\n${tailOf(lines)}\n${errors}`);
  });

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
    output: () => lines.map((entry) => JSON.stringify(entry)).join('\n') + errors,
    line,
    editConfig: edit,
    leapClock: () => void child.kill('SIGUSR2'),
    async stop(signal = 'SIGTERM') {
      if (child.exitCode === null && child.signalCode === null) {
        // The workers of a killed supervisor may keep its output open for a while.
        const ended = once(child, signal === 'SIGKILL' ? 'exit' : 'close');
        child.kill(signal);
        await ended;
      }
      await rm(configDir, { recursive: true, force: true });
      return child.exitCode;
    },
  };
}

export interface LineLog extends Pick<RunningGateway, 'lines' | 'line'> {
  add(line: Record<string, unknown>): void;
  /** Ends the log. A test that waits for a log line gets an error with this text. */
  end(errors: string): void;
}

export function createLineLog(): LineLog {
  const lines: Record<string, unknown>[] = [];
  const waiting = new Set<{ look(): void; giveUp(errors: string): void }>();
  let ended: string | undefined;
  return {
    lines,
    add(line) {
      lines.push(line);
      for (const { look } of waiting) look();
    },
    end(errors) {
      ended = errors;
      for (const { giveUp } of waiting) giveUp(errors);
    },
    line(test) {
      return new Promise((resolve, reject) => {
        const giveUp = (errors = '') => {
          leave();
          reject(new Error(`no such line; the log ended with\n${tailOf(lines)}\n${errors}`));
        };
        const timer = setTimeout(giveUp, startTimeoutMs);
        const look = () => {
          const found = lines.find(test);
          if (found === undefined) return;
          leave();
          resolve(found);
        };
        const waiter = { look, giveUp };
        const leave = () => {
          waiting.delete(waiter);
          clearTimeout(timer);
        };
        waiting.add(waiter);
        look();
        if (ended !== undefined && waiting.has(waiter)) giveUp(ended);
      });
    },
  };
}

/** Writes a configuration to a new folder. */
export async function writeConfig(
  config: Record<string, unknown>,
  { layout = 'plain', files = {} }: Pick<GatewayStart, 'layout' | 'files'>,
) {
  const configDir = await mkdtemp(join(tmpdir(), 'tollgate-'));
  const configFile = join(configDir, 'gateway.yaml');
  const replace = layout === 'plain' ? replaceFile : swapLink;
  const edit: RunningGateway['editConfig'] = (next) =>
    replace(configDir, typeof next === 'string' ? next : stringify(next));
  for (const [name, content] of Object.entries(files))
    await writeFile(join(configDir, name), typeof content === 'string' ? content : stringify(content));
  await edit(config);
  if (layout === 'mounted') await symlink('..data/gateway.yaml', configFile);
  return { configDir, configFile, edit };
}

/** The last lines of a log, with only a few of the access lines, because the access lines would hide the other lines. */
function tailOf(lines: readonly Record<string, unknown>[]): string {
  const accessLines = lines.filter(({ requestId }) => requestId !== undefined);
  const shown = new Set(accessLines.slice(-5));
  return lines
    .filter((line) => line.requestId === undefined || shown.has(line))
    .slice(-50)
    .map((line) => JSON.stringify(line))
    .join('\n');
}

async function replaceFile(configDir: string, text: string): Promise<void> {
  const draft = join(configDir, '.gateway.yaml.swp');
  await writeFile(draft, text);
  await rename(draft, join(configDir, 'gateway.yaml'));
}

/** In Kubernetes, each version is a new folder, and renaming a new link over `..data` switches to the new version. */
async function swapLink(configDir: string, text: string): Promise<void> {
  const version = await mkdtemp(join(configDir, '..version-'));
  await writeFile(join(version, 'gateway.yaml'), text);
  const draft = join(configDir, '..data_tmp');
  await symlink(version, draft);
  await rename(draft, join(configDir, '..data'));
}
