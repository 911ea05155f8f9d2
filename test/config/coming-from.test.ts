import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pino } from 'pino';
import { expect, onTestFinished, test } from 'vitest';
import { parse } from 'yaml';
import { createGateway } from '../support/create-gateway.ts';
import { okResponse, startRecordingBackend } from '../support/recording-backend.ts';
import { runTollgate } from '../support/run-tollgate.ts';
import { settingsOf } from '../support/settings-of.ts';
import { tunedBounds } from '../support/tuned-bounds.ts';

const page = readFileSync('config/guide/coming-from.md', 'utf8');
const examples = [...page.matchAll(/^## (.*)$[\s\S]*?```yaml\n([\s\S]*?)```/gm)].map(([, title, text]) => ({
  title,
  text: text ?? '',
}));

/** The commands that the page tells the reader to run, except `start`, which does not end. */
const commands = [...page.matchAll(/^ {4}npx tollgate (.*)$/gm)]
  .map(([, command = '']) => command.split(' '))
  .filter(([name]) => name !== 'start');

test('the page has an example for each of nginx, Kong and Express', () => {
  expect(examples.map(({ title }) => title?.split(':')[0])).toEqual(['nginx', 'Kong', 'Express']);
});

test.each(examples)(
  'the example for $title passes the commands of the page, and its key gets as much as its plan says',
  async ({ text }) => {
    const folder = mkdtempSync(join(tmpdir(), 'tollgate-coming-from-'));
    onTestFinished(() => rmSync(folder, { recursive: true }));
    const file = join(folder, 'tollgate.yaml');
    writeFileSync(file, text);
    const ran = [];
    for (const command of commands) ran.push(await runTollgate(command, { TOLLGATE_CONFIG: file }));
    expect(ran.map(({ exitCode }) => exitCode)).toEqual([0, 0]);
    const secret = ran.at(-1)?.stdout.trim();
    const stated = parse(readFileSync(file, 'utf8'));
    const backend = await startRecordingBackend({ react: (_, socket) => socket.write(okResponse('[]')) });
    const { redis: _, ...config } = stated;
    const settings = await settingsOf({ ...config, api: undefined, upstream: { url: backend.url } });
    const log = { logger: pino({ level: 'silent' }), access: () => {} };
    const gateway = createGateway({ settings, log, bounds: tunedBounds({}) });
    const { port } = (await gateway.start()).listen;
    onTestFinished(async () => {
      await gateway.drain({ graceMs: 0 });
      await backend.close();
    });
    const headers = { authorization: `Bearer ${secret}` };
    const response = await fetch(`http://127.0.0.1:${port}/any`, { headers });
    const { perSecond, perMinute } = stated.plans.standard;
    expect(response.status).toBe(200);
    expect(response.headers.get('x-ratelimit-limit')).toBe(String(perSecond ?? perMinute));
    expect(backend.requests[0]?.head).toContain('X-Key-Id: acme');
  },
);
