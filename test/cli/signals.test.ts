import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { setTimeout as sleep } from 'node:timers/promises';
import { expect, onTestFinished, test } from 'vitest';
import { stringify } from 'yaml';
import { configFolder } from '../support/config-folder.ts';
import { makeCustomKey, startGateway, testConfig } from '../support/gateway-process.ts';
import { okResponse, startRecordingBackend } from '../support/recording-backend.ts';
import { until } from '../support/until.ts';

const config = () => {
  const upstream = { url: 'http://127.0.0.1:1' };
  return configFolder({ 'tollgate.yaml': stringify(testConfig({ upstream })) }).file;
};

test.each([
  ['npm run tollgate', (file: string) => ['npm', 'run', 'tollgate', '--', 'run', '--config', file]],
  ['npx -c with exec', (file: string) => ['npx', '-c', `exec node gateway/main.ts --config ${file}`]],
  ['npx -c without exec', (file: string) => ['npx', '-c', `node gateway/main.ts --config ${file}`]],
])('a SIGTERM to %s drains the gateway', async (_, command) => {
  const [program = '', ...args] = command(config());
  const child = spawn(program, args, { stdio: ['ignore', 'pipe', 'ignore'], detached: true });
  onTestFinished(() => endGroup(child));
  let log = '';
  // The gateway has the pipe too, so it is closed when both processes have ended.
  child.stdout.on('data', (chunk) => {
    log += chunk;
  });
  await until('the gateway listens', () => log.includes('the gateway listens'));
  child.kill('SIGTERM');
  await once(child.stdout, 'close');
  const messages = log.split('\n').flatMap((line) => (line.startsWith('{') ? [JSON.parse(line).msg] : []));
  expect(messages.slice(-2)).toEqual(['draining', 'stopped']);
});

test('a Ctrl-C that npm sends a second time still lets the requests in flight finish', async () => {
  const backend = await startRecordingBackend({
    react: (_request, socket) => void sleep(1_000).then(() => socket.write(okResponse('{}'))),
  });
  const key = makeCustomKey(100, 100);
  const gateway = await startGateway(testConfig({ upstream: { url: backend.url }, keys: [key.entry] }), {
    // As long as it may take this machine to send them all.
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
  // A gateway that is paused would see both at once.
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
