import { once } from 'node:events';
import { request as httpRequest } from 'node:http';
import { connect } from 'node:net';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import {
  fieldLines,
  okResponse,
  type RecordingBackend,
  startRecordingBackend,
} from '../../support/recording-backend.ts';
import { until } from '../../support/until.ts';
import { type Front, get, sendRaw, startFront, statusOf } from './start-front.ts';

let backend: RecordingBackend;
let front: Front;

beforeEach(async () => {
  backend = await startRecordingBackend();
  front = await startFront({
    url: backend.url,
    bodyBytesMax: 200_000,
    requestFields: ['X-Key-Id', 'acme'],
    responseFields: ['X-RateLimit-Limit', '60'],
  });
});

afterEach(async () => {
  await front.close();
  await backend.close();
});

describe('what the backend receives', () => {
  it('is the raw URI, the fields in order, and the fields of the gateway', async () => {
    await sendRaw(
      front.port,
      get('/v1/pub/%2e%2e/a;b?x=%00&&y?', 'ACCEPT: a', 'X_Key_Id: forged', 'Via: 1.0 old'),
    );
    const [request] = backend.requests;
    expect(request?.head.split('\r\n')[0]).toBe('GET /v1/pub/%2e%2e/a;b?x=%00&&y? HTTP/1.1');
    expect(request && fieldLines(request)).toEqual([
      'Host: api.test',
      'ACCEPT: a',
      'Via: 1.0 old',
      'X-Key-Id: acme',
    ]);
  });

  it.each(['POST', 'DELETE', 'OPTIONS', 'GET', 'PATCH'])(
    'is one %s with its chunked body, never a second request in it',
    async (method) => {
      const smuggled = 'GET /admin HTTP/1.1\r\nHost: x\r\n\r\n';
      const head = `${method} /v1/pets HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\r\n`;
      const chunk = `${smuggled.length.toString(16)}\r\n${smuggled}\r\n`;
      const response = await sendRaw(front.port, `${head}${chunk}${chunk}0\r\n\r\n`);
      expect(statusOf(response)).toBe(200);
      expect(backend.requests).toHaveLength(1);
      expect(backend.requests[0]?.head).toContain(`\r\nContent-Length: ${2 * smuggled.length}\r\n`);
      expect(backend.requests[0]?.head).not.toMatch(/transfer-encoding/i);
      expect(backend.requests[0]?.rawBody).toBe(smuggled + smuggled);
    },
  );

  it.each(['POST', 'DELETE', 'GET'])(
    'is a large chunked body of a %s in chunks, octet by octet',
    async (method) => {
      const head = `${method} / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\r\n`;
      const content = Array.from({ length: 20_000 }, (_, i) => `${i},`).join('');
      const chunks = content.match(/.{1,5000}/g) ?? [];
      const body = chunks.map((chunk) => `${chunk.length.toString(16)}\r\n${chunk}\r\n`).join('');
      expect(statusOf(await sendRaw(front.port, `${head}${body}0\r\n\r\n`))).toBe(200);
      expect(backend.requests).toHaveLength(1);
      expect(backend.requests[0]?.head).toMatch(/\r\nTransfer-Encoding: chunked\r\n/);
      expect(backend.requests[0]?.head).not.toMatch(/content-length/i);
      expect(contentOf(backend.requests[0]?.rawBody ?? '') === content).toBe(true);
    },
  );

  it('is the whole chunked body even if its end arrived before the connection to the backend', async () => {
    // The whole body arrives while the limits of the key are checked. The last octet makes the body too long to be
    // buffered.
    await front.close();
    front = await startFront({
      url: backend.url,
      before: ({ req }) => until('the request has arrived', () => req.complete),
    });
    const content = 'x'.repeat(65_536);
    const head = 'POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\r\n';
    const response = await sendRaw(front.port, `${head}10000\r\n${content}\r\n0\r\n\r\n`);
    expect(statusOf(response)).toBe(200);
    expect(contentOf(backend.requests[0]?.rawBody ?? '') === content).toBe(true);
  });

  it('is a body of one-octet chunks in larger chunks, and a fault in it is still found', async () => {
    const head = 'POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\r\n';
    const small = Array.from({ length: 45_000 }, (_, i) => String.fromCharCode(33 + (i % 90)));
    const large = 'large'.repeat(2_000);
    const content = [...small, large, ...small, large, ...small.slice(1)];
    const body = content.map((chunk) => `${chunk.length.toString(16)}\r\n${chunk}\r\n`).join('');
    expect(statusOf(await sendRaw(front.port, `${head}${body}0\r\n\r\n`))).toBe(200);
    const { rawBody = '' } = backend.requests[0] ?? {};
    expect(contentOf(rawBody) === content.join('')).toBe(true);
    expect(rawBody.match(/[0-9a-f]+\r\n/g)?.length).toBeLessThan(1_000);

    expect(statusOf(await sendRaw(front.port, `${head}${'1\r\nx\r\n'.repeat(1_000)}no chunk\r\n`))).toBe(400);
    expect(backend.requests).toHaveLength(1);
  });

  it.each([
    ['POST', 5],
    ['GET', 5],
    ['DELETE', 70_000],
    ['PUT', 150_000],
  ])('is a %s with a Content-Length of %i and exactly that body', async (method, length) => {
    const body = 'é'.repeat(length);
    const head = `${method} /v1/pets HTTP/1.1\r\nHost: a\r\nContent-Length: ${length}\r\nConnection: close\r\n\r\n`;
    expect(statusOf(await sendRaw(front.port, head + body))).toBe(200);
    expect(backend.requests).toHaveLength(1);
    expect(backend.requests[0]?.head.match(/content-length: \d+|transfer-encoding/gi)).toEqual([
      `Content-Length: ${length}`,
    ]);
    expect(backend.requests[0]?.rawBody === body).toBe(true);
  });

  it('is no part of a body whose Content-Length is above the limit', async () => {
    const head = 'POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 200001\r\n\r\n';
    expect(statusOf(await sendRaw(front.port, head))).toBe(413);
    expect(backend.requests).toEqual([]);
    expect(front.outcomes).toMatchObject([{ kind: 'failed', code: 'payload_too_large', attempts: 0 }]);
  });

  it('is never a complete chunked body above the limit', async () => {
    const chunk = `${(50_000).toString(16)}\r\n${'x'.repeat(50_000)}\r\n`;
    const head = 'POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n';
    expect(statusOf(await sendRaw(front.port, `${head}${chunk.repeat(5)}0\r\n\r\n`))).toBe(413);
    expect(backend.requests).toEqual([]);
    expect(front.outcomes).toMatchObject([{ kind: 'failed', code: 'payload_too_large', headersSent: false }]);
  });
});

describe('Expect: 100-continue', () => {
  const head =
    'POST / HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 2\r\nConnection: close\r\n\r\n';

  it('gets 100 before the body, and then the final response', async () => {
    const socket = connect(front.port, '127.0.0.1').setEncoding('latin1');
    let received = '';
    socket.on('data', (chunk: string) => {
      received += chunk;
      if (received === 'HTTP/1.1 100 Continue\r\n\r\n') socket.write('hi');
    });
    socket.write(head);
    await new Promise((resolve) => socket.once('close', resolve));
    expect(received).toMatch(/^HTTP\/1.1 100 Continue\r\n\r\nHTTP\/1.1 200 OK\r\n/);
    expect(backend.requests[0]?.rawBody).toBe('hi');
    expect(backend.requests[0]?.head).not.toMatch(/expect/i);
  });

  it('gets no 100 when there is no target', async () => {
    await backend.close();
    await until('the target is gone', () => front.targets()[0]?.healthy === false);
    const response = await sendRaw(front.port, head);
    expect(statusOf(response)).toBe(503);
  });
});

describe('what the client receives', () => {
  it('is status, fields and body, without the reason phrase of the backend', async () => {
    backend.react = (_request, socket) =>
      socket.write(okResponse('hello', 201, ['Set-Cookie: a=1', 'Set-Cookie: b=2', 'X-RateLimit-Limit: 9']));
    const response = await sendRaw(front.port, get('/'));
    const [head = '', body] = response.split('\r\n\r\n');
    const lines = head.split('\r\n');
    expect(lines[0]).toBe('HTTP/1.1 201 Created');
    expect(lines).toContain('Set-Cookie: a=1');
    expect(lines).toContain('Set-Cookie: b=2');
    expect(lines).toContain('Cache-Control: private');
    expect(lines.filter((line) => /x-ratelimit-limit/i.test(line))).toEqual(['X-RateLimit-Limit: 60']);
    expect(body).toBe('hello');
  });

  it('is every byte of a large response, even if it reads slowly', async () => {
    const body = Buffer.alloc(5_000_000, 'abcdefghij').toString();
    backend.react = (_request, socket) => socket.write(okResponse(body));
    const received = await new Promise<string>((resolve, reject) => {
      httpRequest({ port: front.port, host: '127.0.0.1' }, async (res) => {
        let text = '';
        for await (const chunk of res) {
          text += chunk;
          await new Promise((next) => setTimeout(next, 1));
        }
        resolve(text);
      })
        .on('error', reject)
        .end();
    });
    expect(received === body).toBe(true);
  });

  it.each([
    ['HEAD', 'HTTP/1.1 200 OK\r\nContent-Length: 17\r\n\r\n', 'Content-Length: 17'],
    ['GET', 'HTTP/1.1 304 X\r\nETag: "a"\r\nContent-Length: 17\r\n\r\n', 'ETag: "a"'],
    ['GET', 'HTTP/1.1 204 X\r\nX-A: b\r\n\r\n', 'X-A: b'],
  ])('has no body after %s when the backend sends %j', async (method, raw, field) => {
    backend.react = (_request, socket) => socket.write(raw);
    const response = await sendRaw(front.port, get('/').replace('GET', method));
    expect(response).toContain(field);
    expect(response.endsWith('\r\n\r\n')).toBe(true);
  });

  it('is the head of an event stream before the first event', async () => {
    let say = (_event: string) => {};
    backend.react = (_request, socket) => {
      socket.write('HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n');
      say = (event) => void socket.end(event);
    };
    const socket = connect(front.port, '127.0.0.1').setEncoding('latin1');
    socket.write(get('/'));
    const [head] = await once(socket, 'data');
    expect(head).toMatch(/^HTTP\/1.1 200 OK\r\n[\s\S]*\r\n\r\n$/);
    say('data: 1\n\n');
    const [event] = await once(socket, 'data');
    expect(event).toContain('data: 1\n\n');
  });

  it('is a chunked response without its trailers', async () => {
    const head = 'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTrailer: X-T\r\n\r\n';
    const end = '0\r\nX-T: 1\r\n\r\n';
    let finish = () => {};
    backend.react = (_request, socket) => {
      socket.write(`${head}2\r\nhi\r\n`);
      finish = () => void socket.write(end);
    };
    const onReceived = (received: string) => received.endsWith('2\r\nhi\r\n') && finish();
    const response = await sendRaw(front.port, get('/'), onReceived);
    expect(response).toContain('\r\n2\r\nhi\r\n0\r\n\r\n');
    expect(response).not.toMatch(/x-t/i);
    // A body that arrives completely gets a Content-Length instead.
    backend.react = (_request, socket) => socket.write(`${head}2\r\nhi\r\n${end}`);
    const whole = await sendRaw(front.port, get('/'));
    expect(whole).toMatch(/\r\nContent-Length: 2\r\n[\s\S]*\r\n\r\nhi$/);
    expect(whole).not.toMatch(/transfer-encoding|x-t/i);
  });

  it.each([
    ['HEAD', 'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n', undefined],
    ['HEAD', 'HTTP/1.1 200 OK\r\nContent-Length: 7\r\n\r\n', '7'],
    ['GET', 'HTTP/1.1 304 Not Modified\r\nContent-Length: 7\r\n\r\n', '7'],
    ['GET', 'HTTP/1.1 204 No Content\r\n\r\n', undefined],
  ])(
    'is, for %s of %j, a response without body and with the target’s length',
    async (method, head, length) => {
      backend.react = (_request, socket) => socket.write(head);
      const response = await sendRaw(
        front.port,
        `${method} / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n`,
      );
      expect(response).toMatch(/\r\n\r\n$/);
      expect(/\r\nContent-Length: (.*)\r\n/.exec(response)?.[1]).toBe(length);
      expect(response).not.toMatch(/transfer-encoding/i);
    },
  );

  it('has the Date of the target, or a Date of the gateway without one', async () => {
    const date = 'Date: Tue, 01 Nov 2022 00:00:00 GMT';
    backend.react = (_request, socket) =>
      socket.write(`HTTP/1.1 200 OK\r\n${date}\r\nContent-Length: 2\r\n\r\nhi`);
    expect((await sendRaw(front.port, get('/'))).match(/^date: .*$/gim)).toEqual([date]);
    backend.react = (_request, socket) => socket.write('HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi');
    expect((await sendRaw(front.port, get('/'))).match(/^date: .*$/gim)).toEqual([
      expect.stringContaining(String(new Date().getUTCFullYear())),
    ]);
  });

  it('is, for HTTP/1.0, a response of unknown length without Keep-Alive, because it ends the connection', async () => {
    let finish = () => {};
    backend.react = (_request, socket) => {
      socket.write('HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nhi\r\n');
      finish = () => void socket.write('0\r\n\r\n');
    };
    const request = 'GET / HTTP/1.0\r\nHost: a\r\nConnection: keep-alive\r\n\r\n';
    const response = await sendRaw(front.port, request, (received) => {
      if (received.endsWith('\r\n\r\nhi')) finish();
    });
    expect(response.match(/^(?:connection|keep-alive): .*$/gim)).toEqual(['Connection: close']);
    expect(response).toMatch(/\r\n\r\nhi$/);
  });

  it('is a body of many small chunks in a few larger chunks', async () => {
    let finish = () => {};
    backend.react = (_request, socket) => {
      socket.write(`HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n${'1\r\nx\r\n'.repeat(1_000)}`);
      finish = () => void socket.write('0\r\n\r\n');
    };
    const bodyOf = (response: string) => response.slice(response.indexOf('\r\n\r\n') + 4);
    const response = await sendRaw(front.port, get('/'), (received) => {
      if (bodyOf(received).match(/x/g)?.length === 1_000) finish();
    });
    const rawBody = bodyOf(response);
    expect(contentOf(rawBody)).toBe('x'.repeat(1_000));
    expect(rawBody.match(/[0-9a-f]+\r\n/g)?.length).toBeLessThan(20);
  });

  it('is the final response without an interim 100', async () => {
    backend.react = (_request, socket) => socket.write(`HTTP/1.1 100 Continue\r\n\r\n${okResponse('hi')}`);
    const response = await sendRaw(front.port, get('/'));
    expect(statusOf(response)).toBe(200);
    expect(response).not.toContain('HTTP/1.1 10');
  });

  it('is every other interim response before the final one', async () => {
    const hints = [
      'Link: </a.css>; rel=preload',
      'Connection: X-Hop',
      'X-Hop: a',
      'Content-Length: 3',
      'X-RateLimit-Limit: 9',
    ];
    const interims = `HTTP/1.1 102 A\r\n\r\n${['HTTP/1.1 103 B', ...hints].join('\r\n')}\r\n\r\n`;
    backend.react = (_request, socket) => socket.write(interims + okResponse('hi'));
    const response = await sendRaw(front.port, get('/'));
    expect(response).toMatch(
      /^HTTP\/1\.1 102 Processing\r\n\r\nHTTP\/1\.1 103 Early Hints\r\nLink: <\/a\.css>; rel=preload\r\n\r\nHTTP\/1\.1 200 OK\r\n[\s\S]*hi$/,
    );
  });

  it('is no interim response to HTTP/1.0', async () => {
    backend.react = (_request, socket) =>
      socket.write(`HTTP/1.1 103 X\r\nLink: a\r\n\r\n${okResponse('hi')}`);
    const response = await sendRaw(front.port, 'GET / HTTP/1.0\r\nHost: a\r\n\r\n');
    expect(response).toMatch(/^HTTP\/1\.1 200 OK\r\n/);
    expect(response).not.toContain('Link');
  });

  it('is a response that arrived during the request body, and then a closed connection', async () => {
    await backend.close();
    backend = await startRecordingBackend({
      reactTo: 'head',
      react: (_request, socket) => socket.write(okResponse('early')),
    });
    front.setUrl(backend.url);
    const socket = connect(front.port, '127.0.0.1').setEncoding('latin1');
    let received = '';
    socket.on('data', (chunk: string) => {
      received += chunk;
    });
    const closed = once(socket, 'close');
    socket.write(`POST /1 HTTP/1.1\r\nHost: a\r\nContent-Length: 100000\r\n\r\n${'x'.repeat(70_000)}`);
    await front.ended(1);
    socket.write(`${'x'.repeat(30_000)}${get('/2')}`);
    await closed;
    expect(received).toMatch(/^HTTP\/1.1 200 OK\r\n[\s\S]*\r\nConnection: close\r\n[\s\S]*early$/);
    expect(received).not.toMatch(/keep-alive/i);
    expect(backend.requests.map(({ target }) => target)).toEqual(['/1']);
  });
});

/** The content of a chunked body, without the framing of the chunks. */
function contentOf(rawBody: string): string {
  let content = '';
  for (let at = 0; ; ) {
    const lineEnd = rawBody.indexOf('\r\n', at);
    const size = Number.parseInt(rawBody.slice(at, lineEnd), 16);
    if (!(size > 0)) return content;
    content += rawBody.slice(lineEnd + 2, lineEnd + 2 + size);
    at = lineEnd + 4 + size;
  }
}
