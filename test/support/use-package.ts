import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { writeFile } from 'node:fs/promises';
import { connect } from 'node:net';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { promisify } from 'node:util';
import { useFreePorts } from './ports-of-init.ts';
import { okResponse, startRecordingBackend } from './recording-backend.ts';
import { bareEnvironment } from './run-tollgate.ts';
import { until } from './until.ts';

/**
 * Runs `init` and then `start` in a folder that has the package, and requests everything that the package serves. Then the function sends
 * requests until the gateway refuses a request.
 *
 * @param command the program and the first arguments that run `tollgate`
 * @returns the status of each kind of request, and the version of Node that runs the gateway
 */
export async function usePackage(
  [program, ...first]: readonly [string, ...string[]],
  { cwd }: { cwd: string },
) {
  const backend = await startRecordingBackend({ react: (_, socket) => socket.write(okResponse('[]')) });
  const options = { cwd, env: { ...bareEnvironment, XDG_CACHE_HOME: cwd } };
  await writeFile(join(cwd, 'api.yaml'), 'openapi: 3.1.0\npaths: { /any: { get: { operationId: any } } }\n');
  const { stdout } = await promisify(execFile)(
    program,
    [...first, 'init', '--upstream', backend.url, '--api', 'api.yaml'],
    options,
  );
  const [secret = ''] = /tg_\w+/.exec(stdout) ?? [];
  const [token = ''] = /tga_\w+/.exec(stdout) ?? [];
  const { port, adminPort } = await useFreePorts(join(cwd, 'tollgate.yaml'));

  // npx starts a shell, and the shell starts the gateway. npx, the shell and the gateway form one process group.
  const gateway = spawn(program, [...first, 'start'], {
    ...options,
    detached: true,
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  try {
    for await (const line of createInterface(gateway.stdout)) if (line.includes('the gateway listens')) break;
    gateway.stdout.resume();
    const admin = `http://127.0.0.1:${adminPort}`;
    const any = `http://127.0.0.1:${port}/any`;
    return {
      any: await statusOf(any, secret),
      pages: await statusOf(`${admin}/`, ''),
      // This request needs the API document, which must be in the package. The next request needs the reading thread.
      document: await statusOf(`${admin}/api/v1/openapi.json`, token),
      keys: await statusOf(`${admin}/api/v1/keys`, token),
      reference: await statusesOf(`http://127.0.0.1:${port}/docs`, ['', '/swagger-ui.js', '/swagger-ui.css']),
      usedUp: await statusAfterSuccess(any, secret),
      node: await nodeVersion(`${admin}/metrics`, token),
    };
  } finally {
    if (gateway.exitCode === null && gateway.pid !== undefined) {
      process.kill(-gateway.pid, 'SIGKILL');
      await once(gateway, 'exit');
    }
    await backend.close();
  }
}

async function statusesOf(base: string, paths: readonly string[]): Promise<readonly number[]> {
  return Promise.all(paths.map((path) => statusOf(base + path, '')));
}

async function statusOf(url: string, bearer: string): Promise<number> {
  return (await request(url, bearer)).status;
}

/** The gateway has the default timeouts. If a busy gateway exceeds a timeout, it responds with 503 for a moment. */
async function request(url: string, bearer: string) {
  let response = { status: 503, body: '' };
  await until(`${url} is served`, async () => {
    const received = await fetch(url, { headers: { authorization: `Bearer ${bearer}` } });
    response = { status: received.status, body: await received.text() };
    return received.status !== 503;
  });
  return response;
}

async function statusAfterSuccess(url: string, bearer: string): Promise<number> {
  for (;;) {
    const status = await statusOf(url, bearer);
    if (status !== 200) return status;
  }
}

async function nodeVersion(url: string, bearer: string): Promise<string | undefined> {
  const { body } = await request(url, bearer);
  return /nodejs_version_info\{version="v([^"]+)"/.exec(body)?.[1];
}

/** Connects to an address that is reserved for documentation, and returns the error code. */
async function errorOutside(): Promise<string> {
  const [error] = await once(connect(443, '192.0.2.1'), 'error');
  return error.code;
}

if (import.meta.main) {
  const [program = '', ...args] = process.argv.slice(2);
  const used = await usePackage([program, ...args], { cwd: process.cwd() });
  console.log(JSON.stringify({ ...used, outside: await errorOutside() }));
}
