import { once } from 'node:events';
import { setTimeout as sleep } from 'node:timers/promises';
import { expect, test, vi } from 'vitest';
import { defaultBounds } from '../../../gateway/shared/timeouts-and-sizes.ts';
import {
  expectRejection,
  type ListenerFixture,
  refuse,
  startListener,
} from '../../support/listener-fixture.ts';
import { openRawClient, type RawClient } from '../../support/raw-http.ts';
import { stopTimers } from '../../support/stopped-clock.ts';
import { until } from '../../support/until.ts';

/** Refuses every request without reading its body, as the gateway does for a request without a valid key. */
function startRefusing(lingerTimeoutMs = 20_000): Promise<ListenerFixture> {
  return startListener({
    handlers: { onRequest: (_req, res) => refuse(res, 'missing_key') },
    bounds: { lingerTimeoutMs },
  });
}

/** Writes as much as the connection accepts, until the connection is closed. */
async function pour(client: RawClient): Promise<void> {
  const piece = Buffer.alloc(65_536, 'b');
  let open = true;
  const closed = client.closed.then(() => {
    open = false;
  });
  while (open)
    if (!client.socket.write(piece))
      await Promise.race([once(client.socket, 'drain').catch(() => {}), closed]);
}

test.each([
  ['a declared length', 'Content-Length: 9000000000', ''],
  ['an endless chunk', 'Transfer-Encoding: chunked', 'fffffffff\r\n'],
])(
  'an endless body with %s after a refusal is read in part, the response arrives, and the connection ends',
  async (_, field, begin) => {
    stopTimers();
    const read = Promise.withResolvers<number>();
    const { listener, port } = await startListener({
      handlers: {
        onRequest: ({ socket }, res) => {
          socket.once('close', () => read.resolve(socket.bytesRead));
          refuse(res, 'missing_key');
        },
      },
    });
    const client = await openRawClient(port);
    client.send(`POST / HTTP/1.1\r\nHost: a\r\n${field}\r\n\r\n${begin}`);
    const poured = pour(client);
    expectRejection(await client.response(), 'missing_key');
    await until('the connection is closed', () => {
      vi.advanceTimersByTime(defaultBounds.lingerTimeoutMs);
      return listener.connections() === 0;
    });
    await poured;
    // With the default limit on discarded octets, the gateway reads less than 1 MB (row 21 of the list of
    // faults in `test/request/README.md`).
    expect(await read.promise).toBeLessThan(1_000_000);
  },
);

test('a client that stops within its body after an early response is disconnected within a second with the default bounds', async () => {
  stopTimers();
  const { lingerTimeoutMs } = defaultBounds;
  const { listener, port } = await startRefusing(lingerTimeoutMs);
  const client = await openRawClient(port, { allowHalfOpen: true });
  client.send('POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 10\r\n\r\nabc');
  expectRejection(await client.response(), 'missing_key');
  expect(await client.responsesToEnd()).toEqual([]);
  vi.advanceTimersByTime(lingerTimeoutMs - 1);
  await sleep(20);
  expect(listener.connections()).toBe(1);
  expect(lingerTimeoutMs).toBeLessThan(1_000);
  vi.advanceTimersByTime(1);
  await expect.poll(() => listener.connections()).toBe(0);
  client.destroy();
});

test('a client that sends the rest of a small body reads its response without a reset', async () => {
  const { port } = await startRefusing();
  const client = await openRawClient(port);
  client.send('POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 100000\r\n\r\n');
  expectRejection(await client.response(), 'missing_key');
  client.send(Buffer.alloc(100_000));
  expect(await client.responsesToEnd()).toEqual([]);
  await client.closed;
});

test('a request in the discarded rest of a body is not served', async () => {
  const seen: string[] = [];
  const { port } = await startListener({
    handlers: {
      onRequest: (req, res) => {
        seen.push(req.url ?? '');
        refuse(res, 'missing_key');
      },
    },
  });
  const client = await openRawClient(port);
  client.send('POST /first HTTP/1.1\r\nHost: a\r\nContent-Length: 10\r\n\r\n');
  expectRejection(await client.response(), 'missing_key');
  client.send('0123456789GET /second HTTP/1.1\r\nHost: a\r\n\r\n');
  expect(await client.responsesToEnd()).toEqual([]);
  expect(seen).toEqual(['/first']);
});

test('a refusal of a complete request closes the connection at once', async () => {
  const { listener, port } = await startRefusing(60_000);
  const client = await openRawClient(port);
  client.send('GET / HTTP/1.1\r\nHost: a\r\n\r\n');
  expectRejection(await client.response(), 'missing_key');
  await expect.poll(() => listener.connections()).toBe(0);
});

test('a body that does not arrive after an early response closes the connection without a second response', async () => {
  const { port } = await startListener({
    handlers: { onRequest: (_req, res) => void res.end('early') },
    bounds: { headersTimeoutMs: 1_500, requestTimeoutMs: 2_000 },
  });
  const client = await openRawClient(port);
  client.send('POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 10\r\n\r\nabc');
  expect((await client.response()).body).toBe('early');
  // The rest of the body does not arrive, so the gateway closes the connection without a second response.
  await client.closed;
  await expect(client.response()).rejects.toThrow();
});
