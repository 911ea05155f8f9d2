import { randomBytes } from 'node:crypto';
import { expect, it, onTestFinished } from 'vitest';
import { webhookEventTypes } from '../../../../gateway/shared/words/event-names.js';
import { configFolder, mainDocument, redisLine } from '../../../support/config-folder.ts';
import { runTollgate } from '../../../support/run-tollgate.ts';
import { startWebhookReceiver } from '../webhook-receiver.ts';

const secret = `whsec_${randomBytes(32).toString('base64')}`;

async function startTestReceiver() {
  const receiver = await startWebhookReceiver(secret);
  onTestFinished(() => receiver.close());
  const notify = `notify:\n  - { url: ${receiver.url}, secretFile: hook, events: [key.banned] }\n`;
  const folder = configFolder({ hook: `${secret}\n`, 'tollgate.yaml': mainDocument + redisLine + notify });
  return { receiver, folder };
}

it('sends an example of each event, with the signature of the receiver in the configuration', async () => {
  const { receiver, folder } = await startTestReceiver();

  const ran = await runTollgate(['notify', 'test', receiver.url, '--config', folder.file]);

  expect(ran).toMatchObject({ exitCode: 0, stderr: '' });
  expect(receiver.refused).toEqual([]);
  expect(receiver.received.map(({ type }) => type).toSorted()).toEqual(webhookEventTypes.toSorted());
  expect(new Set(receiver.received.map(({ id }) => id)).size).toBe(webhookEventTypes.length);
  for (const { data } of receiver.received) expect(data.text).toMatch(/^\S.{10}/);
  const lines = ran.stdout.trimEnd().split('\n');
  expect(lines.map((line) => line.split(/ +/)[0])).toEqual(webhookEventTypes);
  for (const line of lines) expect(line).toMatch(/^\S+ +[\d,]+ ms {2}status 204$/);
});

it.each([500, 302])('exits with 1 if the receiver answers %i, and follows no redirect', async (status) => {
  const { receiver, folder } = await startTestReceiver();
  receiver.status = status;
  const secretFile = folder.pathOf('hook');

  const ran = await runTollgate(['notify', 'test', receiver.url, '--secret-file', secretFile, '--json']);

  const count = webhookEventTypes.length;
  expect(ran).toMatchObject({ exitCode: 1, stderr: `The receiver did not accept ${count} events.\n` });
  const results = JSON.parse(ran.stdout);
  expect(results.map(({ type }: { type: string }) => type)).toEqual(webhookEventTypes);
  for (const result of results)
    expect(result).toMatchObject({ status, error: expect.stringContaining(String(status)) });
  expect(receiver.received).toHaveLength(count);
});

it('prints why there is no response, without the path of the URL', async () => {
  const { receiver, folder } = await startTestReceiver();
  await receiver.close();

  const ran = await runTollgate(['notify', 'test', receiver.url, '--config', folder.file]);

  expect(ran.exitCode).toBe(1);
  expect(ran.stdout.trimEnd().split('\n')).toHaveLength(webhookEventTypes.length);
  expect(ran.stdout).toContain('ECONNREFUSED');
  expect(ran.stdout + ran.stderr).not.toContain('a-token-in-the-path');
});

it.each([
  [
    'http://hooks.example.com/',
    'The URL must begin with https://; only a loopback address may have http://.',
  ],
  ['https://me:pw@hooks.example.com/', 'must have no user and no password'],
  ['hooks.example.com', 'The URL must be an https URL such as https://hooks.example.com/tollgate.'],
  [
    'https://other.example.com/',
    'has no receiver with this URL: add it to `notify`, or give its secret with',
  ],
])('refuses %s', async (url, message) => {
  const { folder } = await startTestReceiver();
  const { exitCode, stdout, stderr } = await runTollgate(['notify', 'test', url, '--config', folder.file]);
  expect({ exitCode, stdout }).toEqual({ exitCode: 1, stdout: '' });
  expect(stderr).toContain(message);
});

it('refuses a file without a secret, and does not print its content', async () => {
  const { receiver, folder } = await startTestReceiver();
  const args = ['notify', 'test', receiver.url, '--secret-file'];
  const missing = await runTollgate([...args, folder.pathOf('none')]);
  expect(missing).toMatchObject({ exitCode: 1, stderr: expect.stringContaining('cannot be read') });
  const wrong = configFolder({ wrong: 'a-password\n' });
  const refused = await runTollgate([...args, wrong.pathOf('wrong')]);
  expect(refused).toMatchObject({ exitCode: 1, stderr: expect.stringContaining('write `whsec_`') });
  expect(refused.stderr).not.toContain('a-password');
});
