import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { okResponse, type RecordingBackend, startRecordingBackend } from '../../support/recording-backend.ts';
import { type StoppedClock, stopClock } from '../../support/stopped-clock.ts';
import { until } from '../../support/until.ts';
import { type Front, get, sendRaw, startFront, statusOf } from './start-front.ts';

/**
 * In this file, the grace period of a client is 100 ms instead of 5 s, and clients are checked every 20 ms instead of every second. A
 * client must transfer at least 25 octets per millisecond instead of 500 octets per second.
 */
const quick = {
  clientBytesPerSecondMin: 25_000,
  clientGraceMs: 100,
  clientAheadMaxMs: 600,
  clientReadAheadMaxMs: 600,
  sweepIntervalMs: 20,
  connectionsPerTargetMax: 8,
};

let clock: StoppedClock;
let backend: RecordingBackend;
let front: Front;
let clients: Socket[];

beforeEach(async () => {
  clients = [];
  backend = await startRecordingBackend();
  front = await startFront({ url: backend.url, bounds: quick });
});

afterEach(async () => {
  for (const client of clients) client.destroy();
  await front.close();
  await backend.close();
});

function open(text: string): Socket {
  const client = connect(front.port, '127.0.0.1').setEncoding('latin1');
  client.on('error', () => {});
  client.write(text, 'latin1');
  clients.push(client);
  return client;
}

async function responseTo(client: Socket): Promise<string> {
  let received = '';
  client.on('data', (text: string) => (received += text));
  await once(client, 'close');
  return received;
}

/** Moves the stopped clock in small steps. The gateway checks its clients after each step. */
async function pass(ms: number): Promise<void> {
  for (let passedMs = 0; passedMs < ms; passedMs += 60) {
    await sleep(60);
    clock.pass(60);
  }
}

const unfinished = [
  ['chunked without a chunk', 'POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n'],
  ['chunked with half a chunk', 'POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nab'],
  ['with one octet of 65,537', 'POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 65537\r\n\r\nx'],
  ['with one octet of ten', 'POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 10\r\n\r\nx'],
  [
    'announced with Expect',
    'POST / HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 9\r\n\r\n',
  ],
] as const;

describe('an upload', () => {
  beforeEach(() => {
    clock = stopClock();
  });

  it.each(unfinished)('%s holds no connection to a target, and ends with 408', async (_what, text) => {
    const slow = Array.from({ length: 20 }, () => open(text));
    const responses = slow.map(responseTo);
    expect(statusOf(await sendRaw(front.port, get('/')))).toBe(200);
    expect(backend.requests).toHaveLength(1);
    expect(backend.openConnections()).toBeLessThanOrEqual(2);
    for (const response of await clock.passUntil(Promise.all(responses), 20)) {
      const final = response.replace('HTTP/1.1 100 Continue\r\n\r\n', '');
      expect(statusOf(final)).toBe(408);
      expect(final).toContain('Connection: close');
    }
    const slowOnes = front.outcomes.filter(({ kind }) => kind === 'failed');
    expect(slowOnes).toHaveLength(20);
    for (const outcome of slowOnes) expect(outcome).toMatchObject({ code: 'request_timeout', attempts: 0 });
  });

  it('that stops after its first octets were forwarded frees its connection and ends with 408', async () => {
    const client = open(`POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 100000\r\n\r\n${'x'.repeat(70_000)}`);
    const response = responseTo(client);
    await until('the target has it', () => front.targets()[0]?.inFlight === 1);
    expect(statusOf(await clock.passUntil(response, 20))).toBe(408);
    expect(front.outcomes).toMatchObject([{ kind: 'failed', code: 'request_timeout', headersSent: false }]);
    expect(front.targets()[0]?.inFlight).toBe(0);
  });

  it('that is slow but fast enough is served, small or large, in chunks or with its length', async () => {
    const sized = open('POST / HTTP/1.1\r\nHost: a\r\nConnection: close\r\nContent-Length: 75000\r\n\r\n');
    const chunked = open(
      'POST / HTTP/1.1\r\nHost: a\r\nConnection: close\r\nTransfer-Encoding: chunked\r\n\r\n',
    );
    const responses = [sized, chunked].map(responseTo);
    const part = 'x'.repeat(1_500);
    for (let sent = 0; sent < 75_000; sent += part.length) {
      sized.write(part);
      chunked.write(`${part.length.toString(16)}\r\n${part}\r\n`);
      await sleep(15);
      clock.pass(15);
    }
    chunked.write('0\r\n\r\n');
    expect((await Promise.all(responses)).map(statusOf)).toEqual([200, 200]);
  });

  it('does not time out while the backend does not read it', async () => {
    await backend.close();
    let reader: Socket | undefined;
    backend = await startRecordingBackend({
      reactTo: 'head',
      react: (_request, socket) => {
        reader = socket.pause();
      },
    });
    front.setUrl(backend.url);
    const body = 'x'.repeat(1_000_000);
    const client = open(
      `POST / HTTP/1.1\r\nHost: a\r\nConnection: close\r\nContent-Length: ${body.length}\r\n\r\n${body}`,
    );
    const response = responseTo(client);
    await backend.received(1);
    await pass(900);
    expect(front.outcomes).toEqual([]);
    reader?.resume();
    reader?.write(okResponse('at last'));
    expect(await response).toMatch(/at last$/);
  });
});

describe('bodies that are being collected', () => {
  it('share memory among keys, and a request above its key’s share gets 503 with Retry-After', async () => {
    await front.close();
    front = await startFront({
      url: backend.url,
      bounds: { ...quick, clientGraceMs: 60_000, clientAheadMaxMs: 60_000, collectedBodiesBytesMax: 90_000 },
    });
    const part = `POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 40000\r\n\r\n${'x'.repeat(20_000)}`;
    const [first, second, third] = [open(part), open(part), open(part)].map(responseTo);
    await front.ended(1);
    expect(front.outcomes).toMatchObject([
      { kind: 'failed', code: 'too_many_uploads', retryAfterSeconds: 1 },
    ]);
    // When the requests have ended, their memory for request bodies is free again.
    for (const client of clients) client.destroy();
    await Promise.all([first, second, third]);
    await front.ended(3);
    const whole = `POST / HTTP/1.1\r\nHost: a\r\nConnection: close\r\nContent-Length: 40000\r\n\r\n${'x'.repeat(40_000)}`;
    for (let i = 0; i < 5; i++) expect(statusOf(await sendRaw(front.port, whole))).toBe(200);
  });
});

describe('a client', () => {
  beforeEach(() => {
    clock = stopClock();
  });

  const large = okResponse('x'.repeat(12_000_000));

  it('that reads nothing of a large response is disconnected, and the connection to the target serves others', async () => {
    backend.react = ({ target }, socket) => socket.write(target === '/large' ? large : okResponse('x'));
    for (let i = 0; i < 4; i++) open(get('/large')).pause();
    await clock.passUntil(front.ended(4), 20);
    for (const outcome of front.outcomes) {
      expect(outcome).toMatchObject({ kind: 'client_gone', cause: expect.stringContaining('too slowly') });
    }
    expect(front.targets()[0]?.inFlight).toBe(0);
    expect(statusOf(await sendRaw(front.port, get('/')))).toBe(200);
  });

  it.each([
    ['often', 20],
    ['rarely, as if it had been delayed', 1_000],
  ])(
    'that reads slowly but fast enough gets the whole response, when the gateway checks %s',
    async (_how, sweepIntervalMs) => {
      await front.close();
      // The kernel buffers megabytes for a client, and accepts more data only when the client has read much of the buffer.
      front = await startFront({
        url: backend.url,
        bounds: { ...quick, clientGraceMs: 500, sweepIntervalMs },
      });
      backend.react = (_request, socket) => socket.write(large);
      const client = open(get('/large'));
      let length = 0;
      client.on('data', (text: string) => {
        length += text.length;
        clock.pass(text.length / 8_000);
        client.pause();
        setTimeout(() => client.resume(), 10);
      });
      await once(client, 'close');
      expect(length).toBeGreaterThan(12_000_000);
      expect(front.outcomes).toMatchObject([{ kind: 'forwarded' }]);
    },
  );

  it('that reads steadily at four times the minimum is not cut, although the kernel takes octets in large bursts', async () => {
    await front.close();
    const bounds = { ...quick, clientReadAheadMaxMs: 120_000, upstreamTotalTimeoutMs: 10_000_000 };
    front = await startFront({ url: backend.url, bounds });
    backend.react = (_request, socket) => socket.write(large);
    const client = open(get('/large'));
    let length = 0;
    client.on('data', (text: string) => {
      length += text.length;
      clock.pass(text.length / 100);
      client.pause();
      setTimeout(() => client.resume(), 10);
    });
    await once(client, 'close');
    expect(length).toBeGreaterThan(12_000_000);
    expect(front.outcomes).toMatchObject([{ kind: 'forwarded' }]);
  });

  it('does not count as slow while the backend is slow', async () => {
    let finish = () => {};
    backend.react = (_request, socket) => {
      socket.write('HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\na');
      finish = () => void socket.write('b');
    };
    const client = open(get('/'));
    const response = responseTo(client);
    await until('it has the first octet', () => client.bytesRead > 0);
    await pass(900);
    finish();
    expect(await response).toMatch(/ab$/);
  });
});

describe('an exchange that reaches the total timeout', () => {
  const patience = { clientGraceMs: 60_000, clientAheadMaxMs: 60_000, clientReadAheadMaxMs: 60_000 };
  const total = { ...quick, ...patience, upstreamTotalTimeoutMs: 2_000 };
  const headOf = (length: number) => `HTTP/1.1 200 OK\r\nContent-Length: ${length}\r\n\r\n`;

  beforeEach(async () => {
    clock = stopClock();
    await front.close();
    front = await startFront({ url: backend.url, bounds: total });
  });

  it('because the client reads slowly is cut because of the client', async () => {
    backend.react = (_request, socket) => socket.write(okResponse('x'.repeat(12_000_000)));
    open(get('/')).pause();
    await until('the gateway waits for the client', () => backend.requests.length === 1);
    await clock.passUntil(front.ended(1), 20);
    expect(front.outcomes).toMatchObject([{ kind: 'client_gone' }]);
  });

  it('because clients of the key that read nothing hold its connections ends with 408, and the target is not blamed', async () => {
    backend.react = (_request, socket) => socket.write(okResponse('x'.repeat(12_000_000)));
    for (let i = 0; i < 12; i++) open(get('/')).pause();
    await clock.passUntil(front.ended(12), 20);
    const ends = front.outcomes.map((outcome) => (outcome.kind === 'failed' ? outcome.code : outcome.kind));
    expect(new Set(ends)).toEqual(new Set(['client_gone', 'request_timeout']));
  });

  it('because the target answers nobody is the fault of the target, also for requests that wait for a connection', async () => {
    backend.react = () => {};
    for (let i = 0; i < 12; i++) open(get('/'));
    await clock.passUntil(front.ended(12), 20);
    expect(backend.requests.length).toBeLessThan(12);
    for (const outcome of front.outcomes)
      expect(outcome).toMatchObject({ kind: 'failed', code: 'upstream_timeout' });
  });

  it('because the client sends slowly ends with 408', async () => {
    const response = responseTo(open('POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 10\r\n\r\nx'));
    await clock.passUntil(front.ended(1), 20);
    expect(statusOf(await response)).toBe(408);
    expect(front.outcomes).toMatchObject([{ kind: 'failed', code: 'request_timeout' }]);
  });

  it.each([
    ['a length', `${headOf(100)}x`],
    ['chunks', 'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nx\r\n'],
  ])(
    'because the target stops within a response with %s fails because of the target',
    async (_what, begin) => {
      backend.react = (_request, socket) => void socket.write(begin);
      const client = open(get('/'));
      await until('the client has the beginning', () => client.bytesRead > 0);
      await clock.passUntil(front.ended(1), 20);
      expect(front.outcomes).toMatchObject([{ kind: 'failed', code: 'upstream_timeout' }]);
    },
  );

  it('fails because of the target if the client is slow for less than half of the time', async () => {
    let begin = () => {};
    backend.react = (_request, socket) => {
      begin = () => void socket.write(`${headOf(12_000_001)}${'x'.repeat(12_000_000)}`);
    };
    const client = open(get('/')).pause();
    await backend.received(1);
    await pass(1_300);
    begin();
    await clock.passUntil(front.ended(1), 20);
    client.destroy();
    expect(front.outcomes).toMatchObject([{ kind: 'failed', code: 'upstream_timeout' }]);
  });
});
