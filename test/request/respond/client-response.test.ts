import { setImmediate as turn } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { responseMessage } from '../../../gateway/request/respond/response-message.ts';
import { startListener } from '../../support/listener-fixture.ts';
import { openRawClient } from '../../support/raw-http.ts';

const body = '{"code":"x"}';
const fields = ['X-Name', 'é', 'Content-Length', String(body.length)];
const refusal = { status: 429, fields, body };

test('a message is a status line, the unchanged fields, Date, Connection and the body, in Latin-1', () => {
  const nowMs = Date.UTC(2026, 10, 21, 9, 5, 7, 999);
  expect(responseMessage(refusal, { nowMs, keepAliveSeconds: 60, head: false })).toBe(
    'HTTP/1.1 429 Too Many Requests\r\nX-Name: é\r\nContent-Length: 12\r\n' +
      'Date: Sat, 21 Nov 2026 09:05:07 GMT\r\nConnection: keep-alive\r\nKeep-Alive: timeout=60\r\n\r\n{"code":"x"}',
  );
  expect(responseMessage(refusal, { nowMs: nowMs + 1, keepAliveSeconds: undefined, head: true })).toMatch(
    /\r\nDate: Sat, 21 Nov 2026 09:05:08 GMT\r\nConnection: close\r\n\r\n$/,
  );
});

test.each(['a\r\nSet-Cookie: b', 'a\rb', 'a\0', '\u0159'])(
  'a value that may split a message is a bug: %j',
  (value) => {
    const bad = { ...refusal, fields: ['Link', value] };
    expect(() => responseMessage(bad, { nowMs: 0, keepAliveSeconds: 60, head: false })).toThrow(
      'the field Link',
    );
  },
);

/** Starts a listener that sends the same response to every request, immediately or after a turn of the event loop. */
async function startRefusing(when: 'at once' | 'later') {
  const received: string[] = [];
  const fixture = await startListener({
    handlers: {
      async onRequest(req, res) {
        received.push(`${req.method} ${req.url}`);
        if (when === 'later') await turn();
        res.answer(refusal);
      },
    },
  });
  return { ...fixture, received, client: await openRawClient(fixture.port) };
}

test.each(['at once', 'later'] as const)(
  'pipelined requests that are answered %s get one response each, in order',
  async (when) => {
    const { client, received } = await startRefusing(when);
    const targets = Array.from({ length: 8 }, (_, index) => `/${index}`);
    client.send(targets.map((target) => `GET ${target} HTTP/1.1\r\nHost: a\r\n\r\n`).join(''));
    for (const _ of targets) {
      const response = await client.response();
      expect(response).toMatchObject({ status: 429, reason: 'Too Many Requests', body });
      expect(response.headers.get('connection')).toBe('keep-alive');
    }
    expect(received).toEqual(targets.map((target) => `GET ${target}`));
    client.destroy();
  },
);

test('no further request is served while a client does not read its response', async () => {
  const received: string[] = [];
  const long = 'x'.repeat(8_000_000);
  const { port } = await startListener({
    handlers: {
      async onRequest(req, res) {
        received.push(req.url ?? '');
        await turn();
        res.answer({ status: 429, fields: ['Content-Length', String(long.length)], body: long });
        // The client does not read this response, so its other requests must wait. A faulty gateway would serve them
        // within 50 turns of the event loop.
        for (let turns = 0; turns < 50; turns++) await turn();
        unread.resolve(req.socket.writableLength);
      },
    },
  });
  const unread = Promise.withResolvers<number>();
  const client = await openRawClient(port);
  client.socket.pause();
  client.send(['/0', '/1', '/2'].map((target) => `GET ${target} HTTP/1.1\r\nHost: a\r\n\r\n`).join(''));
  expect(await unread.promise).toBeGreaterThan(0);
  expect(received).toEqual(['/0']);
  client.socket.resume();
  for (let index = 0; index < 3; index++) expect((await client.response()).body).toHaveLength(long.length);
  expect(received).toEqual(['/0', '/1', '/2']);
  client.destroy();
});

test('a HEAD with a malformed body is refused with a response without a body', async () => {
  const { port } = await startListener();
  const client = await openRawClient(port);
  client.send('HEAD / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\nZZ\r\n');
  expect((await client.response({ head: true })).status).toBe(400);
  expect(await client.responsesToEnd()).toEqual([]);
});

test('the response to a HEAD has no body, and the next request gets its own response', async () => {
  const { client } = await startRefusing('later');
  client.send('HEAD / HTTP/1.1\r\nHost: a\r\n\r\n');
  const response = await client.response({ head: true });
  expect(response.headers.get('content-length')).toBe(String(body.length));
  client.send('GET / HTTP/1.1\r\nHost: a\r\n\r\n');
  expect((await client.response()).body).toBe(body);
  client.destroy();
});

test.each([
  ['HTTP/1.1', 'Connection: close\r\n', 'close'],
  ['HTTP/1.0', '', 'close'],
  ['HTTP/1.0', 'Connection: keep-alive\r\n', 'keep-alive'],
])('in response to %s with %j the Connection field is %s', async (version, field, connection) => {
  const { client, listener } = await startRefusing('later');
  const get = `GET / ${version}\r\nHost: a\r\n${field}\r\n`;
  client.send(get);
  expect((await client.response()).headers.get('connection')).toBe(connection);
  if (connection === 'close') {
    await client.closed;
    await expect.poll(() => listener.connections()).toBe(0);
  } else {
    client.send(get);
    expect((await client.response()).status).toBe(429);
    client.destroy();
  }
});

test.each(['begin', 'answer'] as const)(
  '%s announces how long the idle connection stays open',
  async (how) => {
    const { port } = await startListener({
      bounds: { keepAliveAnnouncedSeconds: 7 },
      handlers: {
        onRequest(_req, res) {
          if (how === 'answer') res.answer(refusal);
          else {
            res.begin(200, ['Content-Length', '2']);
            res.end('ok');
          }
        },
      },
    });
    const client = await openRawClient(port);
    client.send('GET / HTTP/1.1\r\nHost: a\r\n\r\n');
    expect((await client.response()).headers.get('keep-alive')).toBe('timeout=7');
    client.send('GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n');
    const last = await client.response();
    expect(last.headers.get('connection')).toBe('close');
    expect(last.headers.get('keep-alive')).toBeUndefined();
  },
);

test('the next request after a read body is served', async () => {
  const { port } = await startListener({
    handlers: { onRequest: (req, res) => req.on('data', () => {}).on('end', () => res.answer(refusal)) },
  });
  const client = await openRawClient(port);
  for (const framing of [
    'Content-Length: 3\r\n\r\nabc',
    'Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n',
  ]) {
    client.send(`POST / HTTP/1.1\r\nHost: a\r\n${framing}`);
    expect((await client.response()).body).toBe(body);
  }
  client.destroy();
});
