import { once } from 'node:events';
import { createServer, type IncomingMessage } from 'node:http';
import { type AddressInfo, connect } from 'node:net';
import { text } from 'node:stream/consumers';
import { expect, it, onTestFinished } from 'vitest';
import { readInTurns, timeoutsTimerOf } from '../../../gateway/request/listen/node-patches.ts';

/**
 * `gateway/request/listen/node-patches.ts` replaces the members of Node's objects that this test names. The tests of
 * the listener and the fuzz corpus show the effect of the replacements.
 */
it('Node has every undocumented member that the gateway replaces', async () => {
  const server = createServer().listen(0, '127.0.0.1');
  onTestFinished(() => void server.close());
  await once(server, 'listening');
  const client = connect((server.address() as AddressInfo).port, '127.0.0.1');
  onTestFinished(() => void client.destroy());
  client.write('POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\n\r\n');
  const [{ socket, push }] = (await once(server, 'request')) as [IncomingMessage];
  const {
    parser,
    destroySoon,
    push: pushPacket,
    _read,
  } = socket as unknown as Record<string, Record<string, unknown>>;
  const members = [
    parser?.execute,
    parser?.onIncoming,
    parser?.getCurrentBuffer,
    destroySoon,
    push,
    pushPacket,
    _read,
    timeoutsTimerOf(server)?._onTimeout,
  ];
  expect(members.map((member) => typeof member)).toEqual(members.map(() => 'function'));
  expect(server).toHaveProperty('httpAllowHalfOpen', false);
});

it('a packet is parsed in as many turns as it has slices, and a body reaches its reader in order', async () => {
  const server = createServer().listen(0, '127.0.0.1');
  onTestFinished(() => void server.close());
  let turns = 0;
  server.prependListener('connection', (socket) => {
    readInTurns(socket, { sliceBytes: 100, parsingMs: 0 }, (read) =>
      setImmediate(() => (turns += Number(read()))),
    );
  });
  server.on('request', async (req, res) => res.end(await text(req)));
  await once(server, 'listening');
  const body = Array.from({ length: 2_000 }, (_, index) => index).join(' ');
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  for (let round = 0; round < 3; round++)
    expect(await (await fetch(url, { method: 'POST', body })).text()).toBe(body);
  expect(turns).toBeGreaterThan((3 * body.length) / 100);
});
