import { once } from 'node:events';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { Duplex } from 'node:stream';
import { afterAll, afterEach, beforeAll, describe, expect, it, onTestFinished } from 'vitest';
import { createBlockStore } from '../../gateway/keys/leaks/blocked/block-store.ts';
import { connectRedis } from '../support/connect-redis.ts';
import { type DirectoryOfTest, directoryOf, secretOf } from '../support/directory-of.ts';
import { type Fleet, readiness, startFleetHere } from '../support/fleet.ts';
import { freePort } from '../support/free-port.ts';
import { type KeyEntry, makeKey, type RunningGateway } from '../support/gateway-process.ts';
import type { RawClient } from '../support/raw-http.ts';
import { tunedBounds } from '../support/tuned-bounds.ts';
import { patientStore, steadyStore, type Tuning } from '../support/tuning.ts';
import { askForWebSocket, switchingProtocols, webSocketApi } from '../support/web-socket.ts';

/** A WebSocket is closed when its key is no longer valid. */

let backend: Server;
const atBackend = new Set<Duplex>();
const clients: RawClient[] = [];

beforeAll(async () => {
  backend = createServer((_req, res) => void res.end()).listen(0, '127.0.0.1');
  backend.on('upgrade', (_req, socket) => {
    atBackend.add(socket);
    socket.on('error', () => {}).on('close', () => atBackend.delete(socket));
    socket.write(switchingProtocols);
    socket.pipe(socket);
  });
  await once(backend, 'listening');
});

afterEach(() => {
  for (const client of clients.splice(0)) client.destroy();
});

afterAll(() => {
  for (const socket of atBackend) socket.destroy();
  backend.close();
});

async function start(
  starts: number,
  keys: readonly KeyEntry[],
  bounds: NonNullable<Tuning['bounds']>,
): Promise<Fleet<RunningGateway>> {
  const { port } = backend.address() as AddressInfo;
  const fleet = await startFleetHere({
    starts: Array.from({ length: starts }, () => ({ tuning: { bounds } })),
    config: {
      upstream: { url: `http://127.0.0.1:${port}`, health: '/healthz' },
      keys: { file: './keys.yaml', directory: true },
      api: './openapi.yaml',
    },
    files: { 'keys.yaml': keys, 'openapi.yaml': webSocketApi },
    relayed: true,
  });
  onTestFinished(() => fleet.stop());
  return fleet;
}

async function open({ gateways }: Fleet<RunningGateway>, secret: string, gateway = 0): Promise<RawClient> {
  const client = await askForWebSocket(gateways[gateway]?.port ?? 0, secret);
  clients.push(client);
  expect((await client.response()).status).toBe(101);
  return client;
}

/** Sends data to the backend and waits for its echo. */
async function expectOpen(client: RawClient): Promise<void> {
  const echoed = once(client.socket, 'data', { signal: AbortSignal.timeout(120_000) });
  client.send('.');
  await echoed;
}

async function directoryFor({ redis, prefix }: Fleet<RunningGateway>): Promise<DirectoryOfTest> {
  const directory = await directoryOf({ url: redis.url, prefix });
  onTestFinished(() => directory.close());
  return directory;
}

/** Returns the closed WebSockets that the logs of all processes report. */
function closings({ gateways }: Fleet<RunningGateway>) {
  return gateways.flatMap(({ lines }) =>
    lines
      .filter(({ msg }) => msg === 'a WebSocket is closed with its key')
      .map(({ keyId, operation, reason }) => ({ keyId, operation, reason })),
  );
}

describe('a WebSocket of a key in YAML', () => {
  // The regular checks are ten minutes apart, so only the reload can close the WebSocket during the test.
  const bounds = { ...patientStore, tunnelCheckIntervalMs: 600_000, tunnelReadIntervalMs: 600_000 };
  const key = makeKey({ id: 'acme' });
  const other = makeKey({ id: 'globex' });

  it.each([
    ['is revoked', { ...key.entry, disabled: true }, 'disabled'],
    ['is removed', undefined, 'unknown'],
    ['has another secret in its place', { ...key.entry, ...secretsOf('another') }, 'unknown'],
    ['may call other operations only', { ...key.entry, operations: ['news'] }, 'operation_not_allowed'],
    ['allows other addresses only', { ...key.entry, addresses: ['192.0.2.0/24'] }, 'address_not_allowed'],
  ])('is closed when the key %s, and no other WebSocket is', async (_, entry, reason) => {
    const fleet = await start(1, [key.entry, other.entry], bounds);
    const client = await open(fleet, key.secret);
    const neighbour = await open(fleet, other.secret);
    await fleet.editConfig({ keys: [...(entry === undefined ? [] : [entry]), other.entry] });
    await client.closed;
    await expect.poll(() => atBackend.size).toBe(1);
    await expect.poll(() => closings(fleet)).toEqual([{ keyId: 'acme', operation: 'feed', reason }]);
    await expectOpen(neighbour);
  });

  it('is closed when another process receives a report that its secret leaked, and no other WebSocket is', async () => {
    const fleet = await start(1, [key.entry, other.entry], { ...patientStore, tunnelCheckIntervalMs: 20 });
    const client = await open(fleet, key.secret);
    const neighbour = await open(fleet, other.secret);
    const redis = await connectRedis({ prefix: fleet.prefix, place: { url: fleet.redis.url } });
    onTestFinished(redis.close);
    const { digest } = secretOf(key.secret);
    const leak = { atMs: Date.now(), by: 'github', ended: true };
    const store = createBlockStore({ redis, bounds: tunedBounds(patientStore) });
    expect((await store.add({ digest, keyId: 'acme', leak })).kind).toBe('added');
    await client.closed;
    await expect
      .poll(() => closings(fleet))
      .toEqual([{ keyId: 'acme', operation: 'feed', reason: 'leaked' }]);
    await expectOpen(neighbour);
  });

  it('stays open after another edit of the key', async () => {
    const fleet = await start(1, [key.entry], bounds);
    const client = await open(fleet, key.secret);
    const before = fleet.gateways[0]?.lines.length ?? 0;
    await fleet.editConfig({ keys: [{ ...key.entry, plan: 'pro', name: 'Acme' }] });
    await expect
      .poll(() => fleet.gateways[0]?.lines.slice(before))
      .toContainEqual(expect.objectContaining({ msg: 'the configuration was reloaded' }));
    await expectOpen(client);
    expect(closings(fleet)).toEqual([]);
  });
});

it('a WebSocket is closed when its secret expires', async () => {
  const ending = makeKey({ id: 'acme' });
  const endsAt = Date.now() + 8_000;
  const [secret] = ending.entry.secrets;
  if (secret === undefined) throw new Error('a key has a secret');
  const expires = new Date(endsAt).toISOString();
  const fleet = await start(1, [{ ...ending.entry, secrets: [{ ...secret, expires }] }], patientStore);
  const client = await open(fleet, ending.secret);
  await client.closed;
  expect(Date.now()).toBeGreaterThanOrEqual(endsAt);
  const closing = { keyId: 'acme', operation: 'feed', reason: 'expired' };
  await expect.poll(() => closings(fleet)).toEqual([closing]);
});

describe('a WebSocket of a key of the directory', () => {
  // The gateway caches the result of a read for ten minutes. If a read closed only the first WebSocket of a key, the other WebSockets would
  // therefore stay open until the test ends.
  const bounds = {
    ...patientStore,
    tunnelReadIntervalMs: 500,
    tunnelCheckIntervalMs: 600_000,
    directoryAbsentMs: 600_000,
  };

  it.each<[string, string, (directory: DirectoryOfTest) => Promise<unknown>]>([
    ['is revoked', 'disabled', (directory) => directory.edit('issued', { disabled: true })],
    ['is removed', 'unknown', (directory) => directory.discard('issued')],
    [
      'has another secret in its place',
      'unknown',
      (directory) => directory.edit('issued', { secrets: [secretOf('another')] }),
    ],
  ])('is closed on every process when the key %s, and no other WebSocket is', async (_, reason, change) => {
    const fleet = await start(2, [], bounds);
    const directory = await directoryFor(fleet);
    await directory.issue('issued', ['secret']);
    await directory.issue('other', ['secret of another']);
    const opened = [await open(fleet, 'secret'), await open(fleet, 'secret'), await open(fleet, 'secret', 1)];
    const neighbour = await open(fleet, 'secret of another', 1);
    await change(directory);
    for (const client of opened) await client.closed;
    const closing = { keyId: 'issued', operation: 'feed', reason };
    await expect.poll(() => closings(fleet)).toEqual([closing, closing, closing]);
    await expectOpen(neighbour);
  });

  it('is closed although the record of another key is broken', async () => {
    const fleet = await start(1, [], bounds);
    const directory = await directoryFor(fleet);
    await directory.issue('broken', ['secret of another']);
    await directory.issue('issued', ['secret']);
    await open(fleet, 'secret of another');
    const client = await open(fleet, 'secret');
    // An operator may edit the record in Redis by hand, without the gateway.
    await directory.edit('broken', { operations: 5 as unknown as string[] });
    await directory.edit('issued', { disabled: true });
    await client.closed;
  });

  it('is closed soon although Redis is slow and other keys have many WebSockets', async () => {
    const ids = Array.from({ length: 64 }, (_, i) => `issued-${i}`);
    const fleet = await start(1, [], { ...bounds, tunnelsReadAtOnce: ids.length });
    const directory = await directoryFor(fleet);
    await Promise.all(ids.map((id) => directory.issue(id, [id])));
    const opened = await Promise.all(ids.map((id) => open(fleet, id)));
    // The WebSockets are closed in parallel, because closing them one after the other would exceed the test's timeout.
    fleet.relay?.delay({ toServerMs: 600, toClientMs: 600 });
    await Promise.all(ids.map((id) => directory.edit(id, { disabled: true })));
    for (const client of opened) await client.closed;
  });

  it('stays open while Redis is away, and is closed afterwards if the key was revoked', async () => {
    const away = { ...steadyStore, directoryCachedMs: 300, tunnelReadIntervalMs: 300 };
    const fleet = await start(1, [], away);
    const directory = await directoryFor(fleet);
    await directory.issue('issued', ['secret']);
    const client = await open(fleet, 'secret');
    fleet.relay?.switchTo(await freePort());
    fleet.relay?.cut();
    const [gateway] = fleet.gateways;
    if (gateway === undefined) throw new Error('a fleet has a gateway');
    await expect.poll(async () => (await readiness(gateway)).body.status).toBe('degraded');
    await directory.edit('issued', { disabled: true });
    await expectOpen(client);
    expect(closings(fleet)).toEqual([]);
    fleet.relay?.switchTo(fleet.redis.port);
    await client.closed;
  });
});

function secretsOf(secret: string): Pick<KeyEntry, 'secrets'> {
  return { secrets: makeKey({}, secret).entry.secrets };
}
