import { once } from 'node:events';
import { connect } from 'node:net';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { okResponse, type RecordingBackend, startRecordingBackend } from '../../support/recording-backend.ts';
import { type Front, get, sendRaw, startFront, statusOf } from './start-front.ts';

let backend: RecordingBackend;
let front: Front;

beforeEach(async () => {
  backend = await startRecordingBackend();
  front = await startFront({ url: backend.url });
});

afterEach(async () => {
  await front.close();
  await backend.close();
});

const whole = { status: 200, cause: undefined };

describe('each attempt is reported once, before the outcome', () => {
  it('with the status of a whole response', async () => {
    backend.react = (_request, socket) => socket.write(okResponse('fine'));
    expect(statusOf(await sendRaw(front.port, get('/')))).toBe(200);
    expect(front.attempts).toMatchObject([{ target: new URL(backend.url).host, ...whole }]);
    const { startedMs = 0, endedMs = 0 } = front.attempts[0] ?? {};
    expect(endedMs).toBeGreaterThanOrEqual(startedMs);
    expect(startedMs).toBeGreaterThan(0);
  });

  it('with the cause of a lost connection and the retry after it', async () => {
    backend.react = (_request, socket) => {
      if (backend.requests.length === 2) socket.destroy();
      else socket.write(okResponse('fine'));
    };
    for (const _ of ['new connection', 'reused connection'])
      expect(statusOf(await sendRaw(front.port, get('/')))).toBe(200);
    expect(front.attempts).toMatchObject([whole, { status: 0, cause: expect.any(String) }, whole]);
  });

  it('with status and cause when the response is incomplete', async () => {
    backend.react = (_request, socket) => socket.end('HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhalf');
    await sendRaw(front.port, get('/'));
    expect(front.attempts).toMatchObject([{ status: 200, cause: expect.any(String) }]);
  });

  it('with a cause when the client leaves before the response', async () => {
    backend.react = () => {};
    const client = connect(front.port, '127.0.0.1');
    client.write(get('/'));
    await backend.received(1);
    client.resetAndDestroy();
    await front.ended(1);
    expect(front.outcomes).toMatchObject([{ kind: 'client_gone', attempts: 1 }]);
    expect(front.attempts).toMatchObject([{ status: 0, cause: expect.any(String) }]);
  });

  it('for the handshake of a WebSocket', async () => {
    backend.react = (_request, socket) =>
      socket.end('HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\nConnection: close\r\n\r\n');
    const handshake = [
      'GET /feed HTTP/1.1',
      'Host: api',
      'Connection: Upgrade',
      'Upgrade: websocket',
      'Sec-WebSocket-Version: 13',
      'Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==',
    ];
    const client = connect(front.port, '127.0.0.1');
    client.write(`${handshake.join('\r\n')}\r\n\r\n`);
    const [response] = await once(client, 'data');
    client.destroy();
    expect(statusOf(String(response))).toBe(404);
    await front.ended(1);
    expect(front.attempts).toMatchObject([{ status: 404, cause: undefined }]);
  });
});
