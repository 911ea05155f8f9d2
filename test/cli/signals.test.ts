import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { connect } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { expect, onTestFinished, test } from 'vitest';
import { stringify } from 'yaml';
import { configFolder } from '../support/config-folder.ts';
import { makeCustomKey, startGateway, testConfig } from '../support/gateway-process.ts';
import { runInTerminal } from '../support/pseudo-terminal.ts';
import { okResponse, startRecordingBackend } from '../support/recording-backend.ts';
import { until } from '../support/until.ts';

const config = () => {
  const upstream = { url: 'http://127.0.0.1:1' };
  return configFolder({ 'tollgate.yaml': stringify(testConfig({ upstream })) }).file;
};

for (const [name, command, tags] of [
  ['npm run tollgate', (file: string) => ['npm', 'run', 'tollgate', '--', 'run', '--config', file], []],
  [
    'npx -c with exec',
    (file: string) => ['npx', '-c', `exec node gateway/main.ts --config ${file}`],
    ['full'],
  ],
  ['npx -c without exec', (file: string) => ['npx', '-c', `node gateway/main.ts --config ${file}`], ['full']],
] as const)
  test(`a SIGTERM to ${name} drains the gateway`, { tags: [...tags] }, async () => {
    const [program = '', ...args] = command(config());
    // The command keeps no compiled code in the home of the user who runs the tests.
    const env = { ...process.env, XDG_CACHE_HOME: '/dev/null' };
    const child = spawn(program, args, { env, stdio: ['ignore', 'pipe', 'ignore'], detached: true });
    onTestFinished(() => endGroup(child));
    let log = '';
    // The child process and the gateway have the pipe open, so the pipe closes only after both processes have ended.
    child.stdout.on('data', (chunk) => {
      log += chunk;
    });
    await until('the gateway listens', () => log.includes('the gateway listens'));
    child.kill('SIGTERM');
    await once(child.stdout, 'close');
    const messages = log.split('\n').flatMap((line) => (line.startsWith('{') ? [JSON.parse(line).msg] : []));
    expect(messages.slice(-2)).toEqual(['draining', 'stopped']);
  });

test('a Ctrl-C that npm sends a second time still lets the requests in flight finish', {
  tags: 'full',
}, async () => {
  const backend = await startRecordingBackend({
    react: (_request, socket) => void sleep(1_000).then(() => socket.write(okResponse('{}'))),
  });
  const key = makeCustomKey(100, 100);
  const gateway = await startGateway(testConfig({ upstream: { url: backend.url }, keys: [key.entry] }), {
    // A slow machine may need up to 30 s to send all signals.
    tuning: { bounds: { signalEchoMs: 30_000 } },
  });
  onTestFinished(async () => {
    await gateway.stop();
    await backend.close();
  });
  const response = fetch(`${gateway.baseUrl}/pets`, { headers: { authorization: `Bearer ${key.secret}` } });
  await backend.received(1);
  for (let i = 0; i < 50; i++) {
    gateway.child.kill('SIGINT');
    await sleep(1);
  }
  expect((await response).status).toBe(200);
  if (gateway.child.exitCode === null) await once(gateway.child, 'exit');
  expect(gateway.child.exitCode).toBe(0);
});

for (const [signal, code] of [
  ['SIGTERM', 143],
  ['SIGINT', 130],
  ['SIGHUP', 129],
] as const)
  test(`a ${signal} before the gateway listens ends it, also as process 1 of a container`, {
    tags: signal === 'SIGTERM' ? [] : ['full'],
  }, async () => {
    // If process 1 has no listener for a signal, Linux discards the signal. The signal ends any other process that has
    // no listener. Such a process has no exit code.
    const script = `
    import { runGateway } from ${JSON.stringify(new URL('../../gateway/main.ts', import.meta.url).href)};
    void runGateway({ configFile: ${JSON.stringify(config())} });
    process.kill(process.pid, '${signal}');`;
    const child = spawn(process.execPath, ['--input-type=module', '--eval', script], { stdio: 'ignore' });
    onTestFinished(() => void child.kill('SIGKILL'));
    expect(await once(child, 'exit')).toEqual([code, null]);
  });

test('closing the terminal lets the requests in flight finish, although the gateway cannot write to it', {
  tags: 'full',
}, async () => {
  let answer = () => {};
  const backend = await startRecordingBackend({
    react(_request, socket) {
      answer = () => socket.write(okResponse('{}'));
    },
  });
  onTestFinished(() => backend.close());
  const key = makeCustomKey(100, 100);
  const settings = testConfig({ upstream: { url: backend.url }, keys: [key.entry] });
  const { file } = configFolder({ 'tollgate.yaml': stringify(settings) });
  const terminal = await runInTerminal(['run', '--config', file], {}, { columns: 100, rows: 30 });
  const port = () => /listens.*?127\.0\.0\.1:(\d+)/.exec(terminal.output())?.[1];
  await until('the gateway listens', () => port() !== undefined);
  const url = `http://127.0.0.1:${port()}/v1/pets`;
  const response = fetch(url, { headers: { authorization: `Bearer ${key.secret}` } });
  response.catch(() => {});
  await backend.received(1);
  terminal.close();
  await until('no connection is accepted', () => isRefused(Number(port())));
  answer();
  expect((await response).status).toBe(200);
});

function isRefused(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(port, '127.0.0.1');
    socket.once('connect', () => resolve(false)).once('error', () => resolve(true));
    socket.once('connect', () => socket.destroy());
  });
}

test('a SIGHUP, also one during a drain, lets the requests in flight finish', async () => {
  let answer = () => {};
  const backend = await startRecordingBackend({
    react(_request, socket) {
      answer = () => socket.write(okResponse('{}'));
    },
  });
  const key = makeCustomKey(100, 100);
  const gateway = await startGateway(testConfig({ upstream: { url: backend.url }, keys: [key.entry] }));
  onTestFinished(async () => {
    await gateway.stop('SIGKILL');
    await backend.close();
  });
  const response = fetch(`${gateway.baseUrl}/pets`, { headers: { authorization: `Bearer ${key.secret}` } });
  response.catch(() => {});
  await backend.received(1);
  const exited = once(gateway.child, 'exit');
  gateway.child.kill('SIGHUP');
  await Promise.race([exited, gateway.line(({ msg }) => msg === 'draining')]);
  gateway.child.kill('SIGHUP');
  answer();
  expect((await response).status).toBe(200);
  expect(await exited).toEqual([0, null]);
});

test('a second Ctrl-C ends the gateway at once', async () => {
  const backend = await startRecordingBackend({ react: () => {} });
  const key = makeCustomKey(100, 100);
  const gateway = await startGateway(testConfig({ upstream: { url: backend.url }, keys: [key.entry] }));
  onTestFinished(async () => {
    await gateway.stop();
    await backend.close();
  });
  const response = fetch(`${gateway.baseUrl}/pets`, { headers: { authorization: `Bearer ${key.secret}` } });
  response.catch(() => {});
  await backend.received(1);
  gateway.child.kill('SIGINT');
  // Two signals that arrive during a pause of the gateway count as one signal.
  await gateway.line(({ msg }) => msg === 'draining');
  await sleep(700);
  gateway.child.kill('SIGINT');
  await once(gateway.child, 'exit');
  expect(gateway.child.exitCode).toBe(1);
});

function endGroup(child: ChildProcess): void {
  try {
    if (child.pid !== undefined) process.kill(-child.pid, 'SIGKILL');
  } catch {
    // The whole process group has ended.
  }
}
