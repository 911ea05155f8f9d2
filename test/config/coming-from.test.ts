import { readFileSync } from 'node:fs';
import { pino } from 'pino';
import { expect, onTestFinished, test } from 'vitest';
import { parse } from 'yaml';
import { digestSecret, issueSecret } from '../../gateway/shared/secrets.ts';
import { createGateway } from '../support/create-gateway.ts';
import { okResponse, startRecordingBackend } from '../support/recording-backend.ts';
import { settingsOf } from '../support/settings-of.ts';
import { tunedBounds } from '../support/tuned-bounds.ts';

const page = readFileSync('config/coming-from.md', 'utf8');
const examples = [...page.matchAll(/^## (.*)$[\s\S]*?```yaml\n([\s\S]*?)```/gm)].map(([, title, text]) => ({
  title,
  text: text ?? '',
}));

test('the page has an example for each of nginx, Kong and Express', () => {
  expect(examples.map(({ title }) => title?.split(':')[0])).toEqual(['nginx', 'Kong', 'Express']);
});

test.each(examples)(
  'the example for $title starts, and its key gets as much as its plan says',
  async ({ text }) => {
    const secret = issueSecret();
    const stated = parse(text.replaceAll('${ACME_SHA256}', digestSecret(secret)));
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
