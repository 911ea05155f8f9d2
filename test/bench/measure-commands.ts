/**
 * Measures the CPU time of commands, divided by the CPU time of `node -e 0`, in the npm package and in a clone: with the compile cache of
 * earlier runs, and without it as in a first run. The commands send their requests to a gateway in this process.
 *
 * Usage: node test/bench/measure-commands.ts [--rounds 15]
 */
import { execFile } from 'node:child_process';
import { cpSync, mkdirSync, mkdtempSync, rmSync, symlinkSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs, promisify } from 'node:util';
import { makeToken } from '../support/admin-client.ts';
import { startGatewayHere } from '../support/gateway-here.ts';
import { testConfig } from '../support/gateway-process.ts';
import { ratioOf, spreadOf } from './statistics.ts';

interface Subject {
  readonly name: string;
  readonly args: readonly string[];
  /** The largest permitted ratios. */
  readonly atMost: { readonly package: number; readonly clone: number };
}

const own = { package: 3, clone: 5 };
const asking = { package: 5, clone: 8 };
const subjects: readonly Subject[] = [
  { name: '--version', args: ['--version'], atMost: own },
  { name: '--help', args: ['--help'], atMost: own },
  { name: 'keys list', args: ['keys', 'list'], atMost: asking },
  { name: 'why KEY', args: ['why', 'acme'], atMost: asking },
];

const run = promisify(execFile);
const root = fileURLToPath(new URL('../../', import.meta.url));
const { values } = parseArgs({ options: { rounds: { type: 'string', default: '15' } } });
const rounds = Number(values.rounds);

const dir = mkdtempSync(join(tmpdir(), 'tollgate-commands-'));
const { token, entry } = makeToken('read');
const gateway = await startGatewayHere(
  testConfig({
    upstream: { url: 'http://127.0.0.1:1' },
    admin: { host: '127.0.0.1', port: 0, tokens: [entry] },
    keys: [{ id: 'acme', plan: 'free', secrets: [] }],
  }),
);
try {
  const places = { package: await buildPackage(), clone: join(root, 'gateway/cli/bin.js') } as const;
  const commands = (['package', 'clone'] as const).flatMap((place) =>
    subjects.map(({ name, args, atMost }) => ({
      title: `${place}: ${name}`,
      args: [places[place], ...args],
      atMost: atMost[place],
      again: [] as number[],
      first: [] as number[],
    })),
  );
  const empty: number[] = [];
  for (const { args } of commands) await cpuMsOf(args);
  for (let round = 0; round < rounds; round++) {
    empty.push(await cpuMsOf(['-e', '0']));
    for (const { args, again, first } of commands) {
      again.push(await cpuMsOf(args));
      first.push(await cpuMsOf(args, { NODE_DISABLE_COMPILE_CACHE: '1' }));
    }
  }
  console.log(`node -e 0: ${spreadOf(empty).median.toFixed(0)} ms\n`);
  console.log(`${'× node -e 0'.padEnd(20)}  ${'again (range)'.padEnd(18)}  at most  first run (range)`);
  for (const { title, again, first, atMost } of commands) {
    console.log(
      `${title.padEnd(20)}  ${ratio(again, empty).padEnd(18)}  ${String(atMost).padEnd(7)}  ${ratio(first, empty)}`,
    );
  }
} finally {
  await gateway.stop('SIGKILL');
  rmSync(dir, { recursive: true });
}

function ratio(samples: readonly number[], empty: readonly number[]): string {
  const { median, min, max } = ratioOf(samples, empty) ?? spreadOf([Number.NaN]);
  return `${median.toFixed(1)} (${min.toFixed(1)}–${max.toFixed(1)})`;
}

/** Builds the npm package, with the packages of this checkout. @returns the path of its command */
async function buildPackage(): Promise<string> {
  const target = join(dir, 'node_modules/tollgate');
  const bin = join(target, 'gateway/cli/bin.js');
  mkdirSync(join(target, 'gateway/cli'), { recursive: true });
  await run(process.execPath, [join(root, 'config/package/build.ts'), join(target, 'dist')]);
  cpSync(join(root, 'package.json'), join(target, 'package.json'));
  cpSync(join(root, 'gateway/cli/bin.js'), bin);
  symlinkSync(join(root, 'node_modules'), join(target, 'node_modules'));
  return bin;
}

/** Returns the CPU time of a process. The shell's `time` has a precision of 1 ms, and /proc of 10 ms. */
async function cpuMsOf(args: readonly string[], env: Readonly<Record<string, string>> = {}): Promise<number> {
  const script = 'TIMEFORMAT="%U %S"; time "$@" >"$OUTPUT"';
  const { stderr } = await run('bash', ['-c', script, 'bash', process.execPath, ...args], {
    env: {
      PATH: process.env.PATH,
      HOME: dir,
      OUTPUT: join(dir, 'output'),
      TOLLGATE_ADMIN: gateway.adminUrl,
      TOLLGATE_ADMIN_TOKEN: token,
      TOLLGATE_CONFIG: '',
      ...env,
    },
  });
  const [user = Number.NaN, system = Number.NaN] = stderr.trim().split(' ').map(Number);
  if (!Number.isFinite(user + system)) throw new Error(`${args.join(' ')}: ${stderr}`);
  return (user + system) * 1_000;
}
