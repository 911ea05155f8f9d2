import { once } from 'node:events';
import { createServer, type IncomingMessage } from 'node:http';
import { type AddressInfo, connect } from 'node:net';
import { expect, it, onTestFinished } from 'vitest';

/** `gateway/request/listen/node-patches.ts` replaces these. What that achieves is tested with the listener and the fuzz corpus. */
it('Node has every undocumented member that the gateway replaces', async () => {
  const server = createServer().listen(0, '127.0.0.1');
  onTestFinished(() => void server.close());
  await once(server, 'listening');
  const client = connect((server.address() as AddressInfo).port, '127.0.0.1');
  onTestFinished(() => void client.destroy());
  client.write('POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\n\r\n');
  const [{ socket, push }] = (await once(server, 'request')) as [IncomingMessage];
  const { parser, destroySoon } = socket as unknown as Record<string, Record<string, unknown>>;
  const members = [parser?.execute, parser?.onIncoming, parser?.getCurrentBuffer, destroySoon, push];
  expect(members.map((member) => typeof member)).toEqual(members.map(() => 'function'));
});
