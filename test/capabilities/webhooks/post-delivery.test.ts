import type { Socket } from 'node:net';
import { createServer as createTlsServer } from 'node:tls';
import { describe, expect, it, onTestFinished } from 'vitest';
import { newEventId } from '../../../gateway/capabilities/webhooks/queue/delivery-queue.ts';
import { postDelivery } from '../../../gateway/capabilities/webhooks/sender/post-delivery.ts';
import { signDelivery } from '../../../gateway/capabilities/webhooks/sender/sign-delivery.ts';
import type { Receiver } from '../../../gateway/capabilities/webhooks/settings/receivers.ts';
import { createSharedLookup } from '../../../gateway/shared/http/shared-lookup.ts';
import { freePort } from '../../support/free-port.ts';
import { makeCertificate } from '../../support/make-certificate.ts';
import { tunedBounds } from '../../support/tuned-bounds.ts';
import { until } from '../../support/until.ts';
import { gigabyte, hang, type Response, startRawReceiver, startReceiver, status } from './receivers.ts';

type Target = Pick<Receiver, 'url' | 'secrets'>;

function post(
  { url, secrets }: Target,
  tuning: Parameters<typeof tunedBounds>[0] = {},
  signal?: AbortSignal,
) {
  const body = '{"type":"key.banned","timestamp":"2026-03-01T00:00:00.000Z","data":{"key":"ünï"}}';
  const headers = signDelivery({ id: newEventId(), body, secrets, nowMs: Date.now() });
  const bounds = tunedBounds({ webhookTimeoutMs: 60_000, ...tuning });
  return postDelivery({ url, headers, body, lookup: createSharedLookup(bounds), signal, bounds });
}

async function start(response: Response) {
  const receiver = await startReceiver('r', response);
  onTestFinished(() => receiver.close());
  return receiver;
}

async function startRaw(talk: (socket: Socket) => void) {
  const raw = await startRawReceiver('r', talk);
  onTestFinished(() => raw.close());
  return raw;
}

/** Writes the same text until the client disconnects, as fast as the client reads it. */
function flood(text: string): (socket: Socket) => void {
  return (socket) => {
    const write = (): void => {
      while (!socket.destroyed && socket.write(text));
      socket.once('drain', write);
    };
    write();
  };
}

describe('one attempt', () => {
  it('posts JSON with a signature that the package of the standard verifies, also with both secrets of a rotation', async () => {
    const { receiver, received, refused } = await start(status(204));
    expect(await post(receiver)).toEqual({ kind: 'response', status: 204, retryAfter: undefined });
    const renewed = `whsec_${Buffer.alloc(24, 9).toString('base64')}`;
    await post({ ...receiver, secrets: [renewed, ...receiver.secrets] });
    expect(refused).toEqual([]);
    expect(
      received.map(({ type, headers }) => [type, headers['content-type'], headers['user-agent']]),
    ).toEqual([
      ['key.banned', 'application/json', 'Tollgate'],
      ['key.banned', 'application/json', 'Tollgate'],
    ]);
  });

  it('does not follow a redirect', async () => {
    const elsewhere = await start(status(200));
    const { receiver } = await start(status(307, { location: elsewhere.receiver.url }));
    expect(await post(receiver)).toMatchObject({ kind: 'response', status: 307 });
    expect(elsewhere.received).toEqual([]);
  });

  it('returns the requested pause', async () => {
    const { receiver } = await start(status(503, { 'retry-after': '120' }));
    expect(await post(receiver)).toEqual({ kind: 'response', status: 503, retryAfter: '120' });
  });

  it('ends with the head of a response of 1 GB, and reads little of its body', async () => {
    let response: Parameters<Response>[0] | undefined;
    const { receiver } = await start((sent, received) => {
      response = sent;
      gigabyte(sent, received);
    });
    expect(await post(receiver)).toMatchObject({ kind: 'response', status: 200 });
    await until('the gateway has closed the connection', () => response?.closed === true);
    expect(response?.writableFinished).toBe(false);
  });

  it('closes the connection to a receiver that trickles its body', async () => {
    const { receiver, sockets } = await startRaw((socket) => {
      socket.write('HTTP/1.1 200 OK\r\ncontent-length: 1000000\r\n\r\n');
      const timer = setInterval(() => socket.write('a'), 20);
      socket.on('close', () => clearInterval(timer));
    });
    expect(await post(receiver, { webhookLingerTimeoutMs: 200 })).toMatchObject({
      kind: 'response',
      status: 200,
    });
    await until('the gateway has closed the connection', () => sockets.size === 0);
  });

  it('ends after the timeout if the receiver hangs or trickles its head', async () => {
    const hanging = await start(hang);
    const trickling = await startRaw((socket) => {
      socket.write('HTTP/1.1 200 OK\r\n');
      const timer = setInterval(() => socket.write('a'), 20);
      socket.on('close', () => clearInterval(timer));
    });
    for (const { receiver } of [hanging, trickling]) {
      const attempt = await post(receiver, { webhookTimeoutMs: 300 });
      expect(attempt).toEqual({ kind: 'no_response', error: 'no response within 0.3 s' });
    }
    await until('the gateway has closed the connection', () => trickling.sockets.size === 0);
  });

  it.each([
    ['interim responses', 'HTTP/1.1 103 Early Hints\r\nlink: </a>\r\n\r\n', /too many interim responses/],
    ['a long header field', 'a'.repeat(1_000), /Parse Error|Overflow/i],
    ['octets that are not HTTP', 'no response\r\n', /Parse Error/],
  ])('ends early if the receiver sends an endless stream of %s', async (_what, text, error) => {
    const start = text.startsWith('aaa') ? 'HTTP/1.1 200 OK\r\na: ' : '';
    const { receiver, sockets } = await startRaw((socket) => {
      socket.write(start);
      flood(text)(socket);
    });
    expect(await post(receiver)).toEqual({ kind: 'no_response', error: expect.stringMatching(error) });
    await until('the gateway has closed the connection', () => sockets.size === 0);
  });

  it.each([
    ['closes the connection', (socket: Socket) => socket.end(), /socket hang up|closed/],
    ['resets the connection', (socket: Socket) => socket.resetAndDestroy(), /ECONNRESET|hang up/],
    [
      'switches protocols',
      (socket: Socket) =>
        socket.end('HTTP/1.1 101 Switching Protocols\r\nconnection: upgrade\r\nupgrade: x\r\n\r\n'),
      /101/,
    ],
  ])('fails if the receiver %s', async (_what, talk, error) => {
    const { receiver } = await startRaw(talk);
    expect(await post(receiver)).toEqual({ kind: 'no_response', error: expect.stringMatching(error) });
  });

  it('fails with a reason that has neither the path nor the query of the URL', async () => {
    const port = await freePort();
    const { cert, key } = makeCertificate();
    const tls = createTlsServer({ cert, key }, (socket) => socket.on('error', () => {}));
    await new Promise<void>((resolve) => tls.listen(0, '127.0.0.1', resolve));
    onTestFinished(() => void tls.close());
    const { port: tlsPort } = tls.address() as { port: number };
    const { receiver: plain } = await start(status(200));
    const path = '/services/token-in-path?token=in-query';
    const urls = [
      `http://127.0.0.1:${port}${path}`,
      `http://localhost:${port}${path}`,
      `http://nowhere.invalid${path}`,
      `https://127.0.0.1:${tlsPort}${path}`,
      `${plain.url.replace('http:', 'https:')}`,
      `http://127.0.0.1:0${path}`,
      `ftp://127.0.0.1${path}`,
    ];
    for (const url of urls) {
      const attempt = await post({ url, secrets: plain.secrets });
      expect(attempt).toEqual({ kind: 'no_response', error: expect.stringMatching(/^.{5,200}$/) });
      expect(JSON.stringify(attempt)).not.toMatch(/token|whsec/);
    }
  });

  it('ends when it is cancelled', async () => {
    const { receiver, received } = await start(hang);
    const abort = new AbortController();
    const attempt = post(receiver, {}, abort.signal);
    await until('the receiver has got the request', () => received.length === 1);
    abort.abort();
    expect(await attempt).toEqual({ kind: 'cancelled' });
    expect(await post(receiver, {}, abort.signal)).toEqual({ kind: 'cancelled' });
  });
});
