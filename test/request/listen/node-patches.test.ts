import { once } from 'node:events';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import { type AddressInfo, connect } from 'node:net';
import { expect, it, onTestFinished, vi } from 'vitest';
import { holdBody } from '../../../gateway/request/listen/node-patches.ts';

/**
 * `gateway/request/listen/node-patches.ts` replaces these members. The tests of the listener and the fuzz corpus show
 * the effect.
 */
it('Node has every undocumented member that the gateway replaces', async () => {
  const server = createServer().listen(0, '127.0.0.1');
  onTestFinished(() => void server.close());
  await once(server, 'listening');
  const client = connect((server.address() as AddressInfo).port, '127.0.0.1');
  onTestFinished(() => void client.destroy());
  client.write('POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\n\r\n');
  const [{ socket, push, _read }] = (await once(server, 'request')) as [IncomingMessage];
  const { parser, destroySoon } = socket as unknown as Record<string, Record<string, unknown>>;
  const members = [parser?.execute, parser?.onIncoming, parser?.getCurrentBuffer, destroySoon, push, _read];
  expect(members.map((member) => typeof member)).toEqual(members.map(() => 'function'));
});

it('a connection is read up to one packet of a body without a reader, and later to its end', async () => {
  const server = createServer({ requestTimeout: 0 }).listen(0, '127.0.0.1');
  onTestFinished(() => void server.close());
  await once(server, 'listening');
  const client = connect((server.address() as AddressInfo).port, '127.0.0.1');
  onTestFinished(() => void client.destroy());
  client.write('POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n');
  const [req, res] = (await once(server, 'request')) as [IncomingMessage, ServerResponse];
  holdBody(req);
  const { socket } = req;
  const chunks = 200_000;
  client.write(`${'1\r\nx\r\n'.repeat(chunks)}0\r\n\r\n`);
  // Octets after the packet stay in the kernel, so these octets are the last that the server reads.
  const before = socket.bytesRead;
  await vi.waitFor(() => expect(socket.bytesRead).toBeGreaterThan(before));
  const behindFirst = socket.bytesRead;
  await answeredOnAnotherConnection(server);
  expect(socket.bytesRead).toBe(behindFirst);
  expect(req.complete).toBe(false);

  let length = 0;
  for await (const piece of req) length += (piece as Buffer).length;
  expect([length, req.complete]).toEqual([chunks, true]);
  res.end('done');
  const [response] = (await once(client, 'data')) as [Buffer];
  expect(response.toString()).toMatch(/^HTTP\/1\.1 200 /);
});

it.each([
  'Content-Length: 4\r\n\r\nbody',
  'Transfer-Encoding: chunked\r\n\r\n4\r\nbody\r\n0\r\n\r\n',
  'Content-Length: 0\r\n\r\n',
])(
  'a body that arrives with its head is complete at once, and is read or dropped later: %j',
  async (rest) => {
    const server = createServer().listen(0, '127.0.0.1');
    onTestFinished(() => void server.close());
    await once(server, 'listening');
    const client = connect((server.address() as AddressInfo).port, '127.0.0.1');
    onTestFinished(() => void client.destroy());
    server.on('request', (req) => holdBody(req));
    for (const isRead of [true, false, true]) {
      client.write(`POST / HTTP/1.1\r\nHost: a\r\n${rest}`);
      const [req, res] = (await once(server, 'request')) as [IncomingMessage, ServerResponse];
      await new Promise(setImmediate);
      expect(req.complete).toBe(true);
      if (isRead)
        expect(Buffer.concat(await req.toArray()).toString()).toBe(rest.includes('body') ? 'body' : '');
      res.end('done');
      await once(client, 'data');
    }
  },
);

/** Resolves when the server has read a later request on another connection. */
async function answeredOnAnotherConnection(server: Server): Promise<void> {
  server.once('request', (_req, res) => res.end());
  await (await fetch(`http://127.0.0.1:${(server.address() as AddressInfo).port}`)).arrayBuffer();
}
