import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { cpus, loadavg, release, totalmem } from 'node:os';
import { findProgram } from './find-program.ts';

/** Describes the machine and the software of a run. The figures are meaningless without this description. */
export function describeMachine(): Readonly<Record<string, string>> {
  return {
    cpu: `${cpus().length} × ${cpus()[0]?.model ?? 'unknown'}`,
    memory: `${Math.round(totalmem() / 2 ** 30)} GiB`,
    kernel: release(),
    'load average at the start': loadavg()
      .map((load) => load.toFixed(2))
      .join(' '),
    commit: firstLine('git', ['describe', '--always', '--dirty']),
    node: process.version,
    redis: firstLine('redis-server', ['--version']),
    wrk: firstLine('wrk', ['--version']),
    nginx: firstLine('nginx', ['-v']),
    haproxy: firstLine('haproxy', ['-v']),
    ...packageVersions('../../node_modules/', ['undici', 'ioredis', 'pino']),
    ...packageVersions('node_modules/', [
      'fastify',
      '@fastify/http-proxy',
      '@fastify/rate-limit',
      '@fastify/bearer-auth',
      'fast-gateway',
      'http-proxy-3',
    ]),
  };
}

/** The version of a program. Some programs print the version to standard error, and wrk exits with 1. */
function firstLine(name: string, args: readonly string[]): string {
  const program = findProgram(name);
  if (program === undefined) return 'missing';
  const { stdout, stderr } = spawnSync(program, args, { encoding: 'utf8' });
  return `${stdout}${stderr}`.trim().split('\n', 1)[0] ?? '';
}

function packageVersions(folder: string, names: readonly string[]): Record<string, string> {
  const versions: Record<string, string> = {};
  for (const name of names) {
    try {
      const text = readFileSync(new URL(`${folder}${name}/package.json`, import.meta.url), 'utf8');
      versions[name] = JSON.parse(text).version;
    } catch {
      versions[name] = 'missing';
    }
  }
  return versions;
}
