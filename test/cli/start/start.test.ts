import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { promisify } from 'node:util';
import { expect, onTestFinished, test } from 'vitest';
import { loadSettings } from '../../../gateway/config/load-settings.ts';
import { useFreePorts } from '../../support/ports-of-init.ts';
import { okResponse, startRecordingBackend } from '../../support/recording-backend.ts';
import { bareEnvironment, runTollgate } from '../../support/run-tollgate.ts';

function newFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), 'tollgate-start-'));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  return folder;
}

/** Starts a gateway with the configuration of `init`. The gateway ends with the test. @returns the log line about the listeners */
async function start(dir: string, env: Readonly<Record<string, string>> = {}): Promise<unknown> {
  const gateway = spawn(
    process.execPath,
    ['gateway/cli/tollgate.ts', 'start', '--config', join(dir, 'tollgate.yaml')],
    { env: { ...bareEnvironment, ...env }, stdio: ['ignore', 'pipe', 'inherit'] },
  );
  onTestFinished(async () => {
    gateway.kill('SIGKILL');
    if (gateway.exitCode === null) await once(gateway, 'exit');
  });
  const printed: string[] = [];
  for await (const line of createInterface(gateway.stdout)) {
    if (line.includes('the gateway listens')) return JSON.parse(line);
    printed.push(line);
  }
  throw new Error(`The gateway does not listen.\n${printed.join('\n')}`);
}

test('init and start put a gateway in front of a service, whose key gets 429 behind its 60th request', async () => {
  const dir = newFolder();
  const backend = await startRecordingBackend({ react: (_, socket) => socket.write(okResponse('[]')) });
  onTestFinished(() => backend.close());
  // Other programs export such variables. They do not change where the gateway listens.
  const env = { HOST: '0.0.0.0', PORT: 'tcp://10.0.0.1:80', ADMIN_HOST: '0.0.0.0', ADMIN_PORT: '1' };

  const init = await runTollgate(['init', '--upstream', backend.url, '--dir', dir], env);
  expect([init.stderr, init.exitCode]).toEqual(['', 0]);
  const [secret = ''] = /tg_\w+/.exec(init.stdout) ?? [];
  expect(init.stdout).toContain(`curl -i -H 'Authorization: Bearer ${secret}' http://127.0.0.1:8080/`);
  expect(init.stdout).toContain(`npx tollgate start --config ${join(dir, 'tollgate.yaml')}`);
  const written = readFileSync(join(dir, 'tollgate.yaml'), 'utf8');
  const { port, adminPort } = await useFreePorts(join(dir, 'tollgate.yaml'));
  for (const [, shown] of init.stdout.matchAll(/(tga?_\w+)/g)) expect(written).not.toContain(shown);

  expect(await start(dir, env)).toMatchObject({
    listen: { address: '127.0.0.1', port },
    admin: { address: '127.0.0.1', port: adminPort },
  });
  const statuses = new Set<number>();
  const headers = { authorization: `Bearer ${secret}` };
  let sent = 0;
  // A minute may end once during the test, so 121 requests exceed the limit in any case.
  while (!statuses.has(429) && sent < 121) {
    const response = await fetch(`http://127.0.0.1:${port}/any/path?x=1`, { headers });
    await response.text();
    statuses.add(response.status);
    sent++;
  }
  expect(sent).toBeGreaterThanOrEqual(61);
  expect([...statuses]).toEqual([200, 429]);
  expect(backend.requests.at(-1)?.target).toBe('/any/path?x=1');
});

test('init replaces no file', async () => {
  const dir = newFolder();
  writeFileSync(join(dir, 'tollgate.yaml'), '# mine\n');
  const ran = await runTollgate(['init', '--upstream', 'http://127.0.0.1:1', '--dir', dir]);
  expect(ran.exitCode).toBe(1);
  expect(ran.stderr).toContain('tollgate.yaml exists already. Nothing was written.');
  expect(readFileSync(join(dir, 'tollgate.yaml'), 'utf8')).toBe('# mine\n');
});

test('init takes the operations and the base path of an API document', async () => {
  const dir = newFolder();
  const api = join(dir, 'api.yaml');
  writeFileSync(
    api,
    'openapi: 3.0.3\nservers: [{ url: https://example.com/v2 }]\npaths: { /limits: { get: {} }, /pets: { get: {} } }\n',
  );
  const ran = await runTollgate(['init', '--upstream', 'http://127.0.0.1:1', '--api', api, '--dir', dir]);
  expect([ran.stderr, ran.exitCode]).toEqual(['', 0]);
  expect(ran.stdout).toContain('Warning: nothing accepts connections at http://127.0.0.1:1 yet.');
  const loaded = loadSettings({ file: join(dir, 'tollgate.yaml'), env: {} });
  expect(loaded).toMatchObject({
    kind: 'valid',
    settings: {
      basePath: '/v2',
      operations: [{ id: 'get_limits' }, { id: 'get_pets' }],
    },
  });
});

test('init prints a request that calls an operation of the API document', async () => {
  const backend = await startRecordingBackend({ react: (_, socket) => socket.write(okResponse('[]')) });
  onTestFinished(() => backend.close());
  const dir = newFolder();
  const api = join(dir, 'api.yaml');
  writeFileSync(
    api,
    'servers: [{ url: /v2 }]\npaths: { /pets: { post: {} }, "/pets/{id}": { get: {} }, "/it\'s": { get: {} } }\n',
  );
  const ran = await runTollgate(['init', '--upstream', backend.url, '--api', api, '--dir', dir]);
  const [curl = ''] = /curl .*/.exec(ran.stdout) ?? [];
  const { port } = await useFreePorts(join(dir, 'tollgate.yaml'));
  await start(dir);
  const { stdout } = await promisify(execFile)('sh', ['-c', curl.replace('8080', String(port))]);
  expect(stdout).toMatch(/^HTTP\/1.1 200 /);
  expect(backend.requests.map(({ target }) => target)).toEqual(["/v2/it's"]);
});

test.each([
  ['/pets: { post: {} }, "/pets/{id}": { get: {} }', "'http://127.0.0.1:8080/pets/{id}'"],
  ['/pets: { post: {} }', '-X POST http://127.0.0.1:8080/pets'],
])('init prints the best request for the paths %s', async (paths, words) => {
  const dir = newFolder();
  const api = join(dir, 'api.yaml');
  writeFileSync(api, `paths: { ${paths} }\n`);
  const ran = await runTollgate(['init', '--upstream', 'http://127.0.0.1:1', '--api', api, '--dir', dir]);
  expect(ran.stdout).toMatch(/only now(\. Replace the parameters in braces)?:\n {2}curl/);
  expect(ran.stdout).toContain(` ${words}\n`);
});

test.each([
  [
    'a URL with a path',
    ['--upstream', 'http://localhost/api'],
    'without a path, such as http://localhost. Nothing',
  ],
  ['no URL', ['--upstream', 'localhost:3000'], 'without a path, such as http://localhost:3000. Nothing'],
  [
    'an API document that is not there',
    ['--upstream', 'http://127.0.0.1:1', '--api', 'none.yaml'],
    'this file does not exist',
  ],
])('init with %s writes nothing and says why', async (_, args, message) => {
  const dir = newFolder();
  const ran = await runTollgate(['init', ...args, '--dir', dir]);
  expect(ran.exitCode).toBe(1);
  expect(ran.stderr).toContain(message);
  expect(ran.stderr).toContain('Nothing was written.');
  expect((await runTollgate(['check', join(dir, 'tollgate.yaml')])).stderr).toContain(
    'this file does not exist',
  );
});

test('start without a configuration says how to get one', async () => {
  const ran = await runTollgate(['start', '--config', join(newFolder(), 'none.yaml')]);
  expect(ran.exitCode).toBe(1);
  expect(ran.stderr).toContain('`tollgate init --upstream URL` writes one');
});
