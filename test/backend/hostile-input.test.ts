import { once } from 'node:events';
import { connect } from 'node:net';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { createPetStore } from '../../backend/pets.ts';
import { expectError, sendRaw, startStoreApp } from '../support/store-app.ts';

const mebibyte = 1_048_576;

describe('a body that is no NewPet', () => {
  it.each([
    ['a missing name', '{"categoryId":1}', ['name']],
    ['a missing categoryId', '{"name":"n"}', ['categoryId']],
    ['nothing at all', '{}', ['name', 'categoryId']],
    ['wrong types throughout', '{"name":1,"categoryId":"1","status":1}', ['name', 'categoryId', 'status']],
    ['nulls', '{"name":null,"categoryId":null,"status":null}', ['name', 'categoryId', 'status']],
    ['an unknown status', '{"name":"n","categoryId":1,"status":"lost"}', ['status']],
    ['a name of 1,001 characters', `{"name":"${'n'.repeat(1_001)}","categoryId":1}`, ['name', '1000']],
    ['a name of a megabyte', `{"name":"${'n'.repeat(1_000_000)}","categoryId":1}`, ['name']],
    ['an array', '[{"name":"n","categoryId":1}]', ['body']],
    ['a bare null', 'null', ['body']],
    ['a bare number', '12345678901234567890', ['body']],
    ['an empty body', '', ['body', 'empty']],
    ['broken JSON', '{"name":"n","categoryId":', ['body', 'JSON']],
    ['JSON with a tail', '{"name":"n","categoryId":1}{}', ['body', 'JSON']],
    ['a leading zero', '{"name":"n","categoryId":01}', ['body', 'JSON']],
    ['NaN', '{"name":"n","categoryId":NaN}', ['body', 'JSON']],
    ['a field given twice', '{"name":"a","name":"b","categoryId":1}', ['name', 'twice']],
    ['a field given twice, once escaped', '{"name":"a","n\\u0061me":"b","categoryId":1}', ['name', 'twice']],
    ['a __proto__ field', '{"name":"n","categoryId":1,"__proto__":{"status":"sold"}}', ['__proto__']],
    ['a hidden __proto__', '{"name":"n","categoryId":1,"x":[{"\\u005f_proto__":1}]}', ['__proto__']],
    ['33 open brackets', `${'['.repeat(33)}${']'.repeat(33)}`, ['deep']],
    ['half a megabyte of brackets', '['.repeat(mebibyte / 2) + ']'.repeat(mebibyte / 2), ['deep']],
    ['half a megabyte of objects', `${'{"a":'.repeat(150_000)}1${'}'.repeat(150_000)}`, ['deep']],
  ])('gets 400 with the reason: %s', async (_, body, words) => {
    const store = await startStoreApp();
    const message = await expectError(await store.post(body), 400, 'invalid_request');
    for (const word of words) expect(message).toContain(word);
    expect(message.length).toBeLessThan(500);
  });

  it.each([
    ['a lone byte', [0x22, 0xff, 0x22]],
    ['an overlong slash', [0x22, 0xc0, 0xaf, 0x22]],
    ['a surrogate', [0x22, 0xed, 0xa0, 0x80, 0x22]],
    ['half a character', [0x22, 0xf0, 0x9f, 0xa6]],
    ['UTF-16', [0xff, 0xfe, 0x7b, 0x00, 0x7d, 0x00]],
    ['gzip', [0x1f, 0x8b, 0x08, 0x00]],
  ])('gets 400 with the reason for broken UTF-8 (%s)', async (_, bytes) => {
    const store = await startStoreApp();
    const message = await expectError(await store.post(new Uint8Array(bytes)), 400, 'invalid_request');
    expect(message).toContain('UTF-8');
  });

  it('does not include brackets, colons and quotes inside strings, which are text', async () => {
    const store = await startStoreApp();
    const name = '{[:"\\"name":\\\\'.repeat(20);
    const response = await store.post(JSON.stringify({ name, categoryId: 1 }));
    expect(await response.json()).toMatchObject({ name });
  });

  it('does not include names that every JavaScript object inherits, which are plain strings', async () => {
    const store = await startStoreApp();
    const response = await store.post('{"constructor":1,"toString":2,"name":"toJSON","categoryId":1}');
    expect(await response.json()).toEqual({ id: 1, name: 'toJSON', categoryId: 1 });
  });

  it('is refused with 400, and all other JSON is stored exactly', async () => {
    const store = await startStoreApp();
    const field = fc.oneof(fc.string({ unit: 'binary' }), fc.jsonValue(), fc.constantFrom('sold', 1, -1.5));
    await fc.assert(
      fc.asyncProperty(fc.record({ name: field, categoryId: field, status: field }), async (body) => {
        const response = await store.post(JSON.stringify(body));
        if (response.status === 201) expect(await response.json()).toMatchObject(body);
        else await expectError(response, 400, 'invalid_request');
      }),
      { numRuns: 80 },
    );
    expect(store.logLines.filter((line) => !line.includes('listening'))).toEqual([]);
  });
});

describe('a body of the wrong kind or size', () => {
  it.each(['text/plain', 'application/jsonx', 'application/merge-patch+json', 'json', ';;', '*/*'])(
    'gets 415 for content-type %s',
    async (type) => {
      const store = await startStoreApp();
      const response = await store.post('{"name":"n","categoryId":1}', { 'content-type': type });
      await expectError(response, 415, 'unsupported_media_type');
    },
  );

  it('gets 415 without a content-type, and 400 without a body', async () => {
    const store = await startStoreApp();
    const body = new TextEncoder().encode('{}');
    await expectError(await store.post(body, {}), 415, 'unsupported_media_type');
    const none = await fetch(`${store.url}/v1/pets`, { method: 'POST' });
    expect(await expectError(none, 400, 'invalid_request')).toContain('body');
  });

  it.each(['application/json; charset=utf-8', 'Application/JSON'])(
    'does not include content-type %s, which is JSON',
    async (type) => {
      const store = await startStoreApp();
      expect((await store.post('{"name":"n","categoryId":1}', { 'content-type': type })).status).toBe(201);
    },
  );

  it('gets a readable 413 above 1 MiB, and exactly 1 MiB is read', async () => {
    const store = await startStoreApp();
    const pet = '{"name":"n","categoryId":1}';
    expect((await store.post(pet.padEnd(mebibyte))).status).toBe(201);
    await expectError(await store.post(pet.padEnd(mebibyte + 1)), 413, 'payload_too_large');
    await expectError(await store.post(pet.padEnd(6 * mebibyte)), 413, 'payload_too_large');
  });

  it('has the same limit in chunks', async () => {
    const store = await startStoreApp();
    const body = new Blob([' '.repeat(mebibyte + 1)]).stream();
    const response = await fetch(`${store.url}/v1/pets`, {
      method: 'POST',
      body,
      duplex: 'half',
      headers: { 'content-type': 'application/json' },
    } as RequestInit);
    await expectError(response, 413, 'payload_too_large');
  });
});

describe('a request that matches no route', () => {
  it('gets 404 on an unknown path, for any method and body', async () => {
    const store = await startStoreApp();
    for (const path of ['/', '/v1', '/v2/pets', '/v1/pets/1/2', '/v1/Pets', '//v1/pets', '/__proto__']) {
      await expectError(await fetch(store.url + path), 404, 'not_found');
      await expectError(await fetch(store.url + path, { method: 'POST', body: '{' }), 404, 'not_found');
    }
  });

  it.each([
    ['/v1/pets', 'DELETE', 'GET, HEAD, POST'],
    ['/v1/pets?limit=1', 'OPTIONS', 'GET, HEAD, POST'],
    ['/v1/pets/1', 'PUT', 'GET, HEAD'],
    ['/v1/pets/1', 'PROPFIND', 'GET, HEAD'],
    ['/v1/store/orders', 'POST', 'GET, HEAD'],
    ['/healthz', 'PATCH', 'GET, HEAD'],
  ])('on %s with %s gets 405 with Allow', async (path, method, allow) => {
    const store = await startStoreApp();
    const response = await fetch(store.url + path, { method });
    expect(response.headers.get('allow')).toBe(allow);
    await expectError(response, 405, 'method_not_allowed');
  });

  it('gets 400 for broken percent-encoding', async () => {
    const store = await startStoreApp();
    await expectError(await fetch(`${store.url}/v1/pets/%zz`), 400, 'invalid_request');
  });

  it.each([
    ['noise', 'NOISE\r\n\r\n', 400, 'invalid_request'],
    ['no Host', 'GET /v1/pets HTTP/1.1\r\nConnection: close\r\n\r\n', 400, 'invalid_request'],
    [
      'two framings',
      'POST /v1/pets HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n',
      400,
      'invalid_request',
    ],
    [
      'a broken chunk',
      'POST /v1/pets HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n',
      400,
      'invalid_request',
    ],
    [
      'a huge header',
      `GET /v1/pets HTTP/1.1\r\nHost: a\r\nX: ${'x'.repeat(70_000)}\r\n\r\n`,
      431,
      'headers_too_large',
    ],
  ])('gets an Error body too: %s', async (_, bytes, status, code) => {
    const store = await startStoreApp();
    const [head = '', body = ''] = (await sendRaw(store.port, bytes)).split('\r\n\r\n');
    expect(head).toMatch(new RegExp(`^HTTP/1.1 ${status} `));
    expect(JSON.parse(body)).toEqual({ code, message: expect.any(String), status });
  });

  it.each(['Expect: magic', 'Upgrade: h2c\r\nConnection: Upgrade', 'Accept-Version: 9'])(
    'differs from a request with the header %j, which is ignored',
    async (header) => {
      const store = await startStoreApp();
      const bytes = `GET /v1/pets HTTP/1.1\r\nHost: a\r\n${header}\r\nConnection: close\r\n\r\n`;
      expect(await sendRaw(store.port, bytes)).toMatch(/^HTTP\/1.1 200 OK/);
    },
  );
});

describe('a store in trouble', () => {
  it('does not log a client that leaves within its body as an error', async () => {
    const store = await startStoreApp();
    const socket = connect(store.port, '127.0.0.1');
    socket.write(
      'POST /v1/pets HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\nContent-Length: 99\r\n\r\n{',
    );
    await once(socket, 'ready');
    expect((await fetch(`${store.url}/healthz`)).status).toBe(200);
    socket.destroy();
    await once(socket, 'close');
    expect((await fetch(`${store.url}/healthz`)).status).toBe(200);
    expect(store.logLines.filter((line) => !line.includes('listening'))).toEqual([]);
  });

  it('answers a bug with 500 without the cause, which is logged with the request id', async () => {
    const pets = createPetStore({ petsMax: 1 });
    const store = await startStoreApp({
      ...pets,
      list() {
        throw new Error('the private cause');
      },
    });
    const response = await fetch(`${store.url}/v1/pets`, { headers: { 'x-request-id': 'id-7' } });
    expect(await expectError(response, 500, 'internal')).not.toContain('private');
    expect(store.logLines.at(-1)).toContain('the private cause');
    expect(store.logLines.at(-1)).toContain('"requestId":"id-7"');
  });

  it('does not log responses below 500', async () => {
    const store = await startStoreApp();
    for (const path of ['/healthz', '/v1/pets', '/v1/pets/1', '/nope', '/v1/pets?limit=0']) {
      await (await fetch(store.url + path)).text();
    }
    expect(store.logLines.filter((line) => !line.includes('listening'))).toEqual([]);
  });
});
