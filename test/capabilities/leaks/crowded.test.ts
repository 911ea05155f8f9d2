import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { expect, it, onTestFinished } from 'vitest';
import { startGatewayHere } from '../../support/gateway-here.ts';
import { makeKey, testConfig } from '../../support/gateway-process.ts';
import { entryFor, makeReporter, sendReport } from '../../support/leak-report.ts';

const reporter = makeReporter();

/** Sends bodies that begin with `burst` octets and then arrive octet by octet. Their identifier is public, and their signature is wrong. */
async function startSlowBodies(port: number, addresses: readonly string[], burst: number): Promise<void> {
  const { 'github-public-key-signature': signature } = reporter.fieldsFor('another body');
  const head = [
    'POST /leaks HTTP/1.1',
    'Host: api.example.com',
    `Github-Public-Key-Identifier: ${reporter.identifier}`,
    `Github-Public-Key-Signature: ${signature}`,
    'Content-Length: 30000000',
  ];
  const sockets: Socket[] = [];
  const timer = setInterval(() => {
    for (const socket of sockets) if (socket.writable) socket.write('x');
  }, 100);
  onTestFinished(() => {
    clearInterval(timer);
    for (const socket of sockets) socket.destroy();
  });
  for (const localAddress of addresses) {
    const socket = connect({ port, host: '127.0.0.1', localAddress }).on('error', () => {});
    sockets.push(socket);
    await once(socket, 'connect');
    socket.write(`${head.join('\r\n')}\r\n\r\n${'x'.repeat(burst)}`);
  }
}

it.each([
  ['the address of the report', 1],
  ['many addresses', 50],
])('200 slow bodies from %s do not crowd out a signed report of 5 MB', async (_, addresses) => {
  const key = makeKey({ id: 'in-file', plan: 'pro' });
  const gateway = await startGatewayHere(
    testConfig({
      upstream: { url: 'http://127.0.0.1:1' },
      keys: [key.entry],
      leaksPath: '/leaks',
      leaks: { onLeak: 'report', github: { keysFile: './github-keys.json' } },
    }),
    { files: { 'github-keys.json': reporter.publicKeys } },
  );
  onTestFinished(async () => void (await gateway.stop('SIGINT')));
  const from = Array.from({ length: 200 }, (_one, index) => `127.0.0.${1 + (index % addresses)}`);
  await startSlowBodies(gateway.port, from, 500_000);
  const url = `https://example.com/${'x'.repeat(50_000)}`;
  const entries = [entryFor(key.secret), ...Array.from({ length: 100 }, () => entryFor('unknown', { url }))];
  const beganMs = performance.now();
  const { status, body } = await sendReport(`http://127.0.0.1:${gateway.port}`, reporter, entries);
  expect([status, body[0]?.label]).toEqual([200, 'true_positive']);
  expect(performance.now() - beganMs).toBeLessThan(10_000);
});
