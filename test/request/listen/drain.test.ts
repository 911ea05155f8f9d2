import type { ServerResponse } from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { startListener } from '../../support/listener-fixture.ts';
import { openRawClient } from '../../support/raw-http.ts';

const get = 'GET / HTTP/1.1\r\nHost: a\r\n\r\n';
const longDrain = { deadlineMs: 20_000 };

test('a drain finishes a response in flight with Connection: close', async () => {
  const arrived = Promise.withResolvers<ServerResponse>();
  const { listener, port } = await startListener({
    handlers: { onRequest: (_req, res) => arrived.resolve(res) },
  });
  const client = await openRawClient(port);
  client.send(get);
  const begun = await arrived.promise;
  const drained = listener.drain(longDrain);
  // The pause is long enough for the drain to close idle connections.
  await sleep(100);
  begun.end('done');
  const response = await client.response();
  expect(response.body).toBe('done');
  expect(response.headers.get('connection')).toBe('close');
  await client.closed;
  await drained;
});

test('a drain finishes a streamed response and closes its connection', async () => {
  const begun = Promise.withResolvers<ServerResponse>();
  const { listener, port } = await startListener({
    handlers: {
      onRequest(_req, res) {
        res.write('half ');
        begun.resolve(res);
      },
    },
  });
  const client = await openRawClient(port);
  client.send(get);
  const half = await begun.promise;
  await expect.poll(() => client.socket.bytesRead).toBeGreaterThan(0);
  const drained = listener.drain(longDrain);
  await sleep(100);
  half.end('whole');
  expect((await client.response()).body).toBe('half whole');
  await client.closed;
  await drained;
});

test('a request on an idle connection at the start of a drain is served, with Connection: close', async () => {
  const { listener, port } = await startListener({ bounds: { drainIdleGraceMs: 15_000 } });
  const client = await openRawClient(port);
  client.send(get);
  expect((await client.response()).headers.get('connection')).toBe('keep-alive');
  client.send(get);
  const drained = listener.drain(longDrain);
  const response = await client.response();
  expect(response.status).toBe(200);
  expect(response.headers.get('connection')).toBe('close');
  await client.closed;
  await drained;
});

test('a request behind an unread response is served during a drain, with Connection: close', async () => {
  const long = 'x'.repeat(8_000_000);
  const fields = ['Content-Length', String(long.length)];
  const answered = Promise.withResolvers<void>();
  const { listener, port } = await startListener({
    handlers: {
      onRequest(_req, res) {
        res.answer({ status: 429, fields, body: long });
        answered.resolve();
      },
    },
  });
  const client = await openRawClient(port);
  client.socket.pause();
  client.send(get);
  await answered.promise;
  const drained = listener.drain(longDrain);
  client.send(get);
  await sleep(100);
  client.socket.resume();
  expect((await client.response()).headers.get('connection')).toBe('keep-alive');
  expect((await client.response()).headers.get('connection')).toBe('close');
  await client.closed;
  await drained;
});

test('requests pipelined before a drain all get responses, the last with Connection: close', async () => {
  const { promise: draining, resolve: begin } = Promise.withResolvers<void>();
  let isFirst = true;
  const { listener, port } = await startListener({
    handlers: {
      async onRequest(_req, res) {
        // The first request gets its response immediately, and the other requests get their responses during the drain.
        if (isFirst) isFirst = false;
        else await draining;
        res.end('done');
      },
    },
  });
  const client = await openRawClient(port);
  client.send(get.repeat(5));
  const first = await client.response();
  const drained = listener.drain(longDrain);
  begin();
  const responses = [first, ...(await client.responsesToEnd())];
  expect(responses.map(({ body }) => body)).toEqual(Array(5).fill('done'));
  expect(responses.at(-1)?.headers.get('connection')).toBe('close');
  await drained;
});

test('a drain closes idle connections without a response, and accepts no new connections', async () => {
  const { listener, port } = await startListener();
  const clients = await Promise.all([openRawClient(port), openRawClient(port)]);
  clients[0]?.send(get);
  await clients[0]?.response();
  const drained = listener.drain(longDrain);
  await expect(openRawClient(port)).rejects.toThrow('ECONNREFUSED');
  for (const client of clients) expect(await client.responsesToEnd()).toEqual([]);
  await drained;
  await expect.poll(() => listener.connections()).toBe(0);
});

test('a drain destroys a connection that is not finished by the deadline', async () => {
  const arrived = Promise.withResolvers<void>();
  const { listener, port } = await startListener({ handlers: { onRequest: () => arrived.resolve() } });
  const client = await openRawClient(port);
  client.send(get);
  await arrived.promise;
  await listener.drain({ deadlineMs: 100 });
  await client.closed;
  await expect.poll(() => listener.connections()).toBe(0);
});

test('clients that send requests without a pause see no failure during a drain', async () => {
  const { listener, port } = await startListener({ bounds: { drainIdleGraceMs: 15_000 } });
  const clients = await Promise.all(Array.from({ length: 20 }, () => openRawClient(port)));
  let answered = 0;
  const ends = clients.map(async (client) => {
    for (;;) {
      client.send(get);
      const { status, headers } = await client.response();
      expect(status).toBe(200);
      answered++;
      if (headers.get('connection') === 'close') return;
    }
  });
  await expect.poll(() => answered).toBeGreaterThan(200);
  const drained = listener.drain(longDrain);
  await Promise.all(ends);
  await drained;
});
