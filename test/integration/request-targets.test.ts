import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { freshWindows } from '../support/fresh-windows.ts';
import { startGatewayHere } from '../support/gateway-here.ts';
import { makeCustomKey, type RunningGateway, testConfig } from '../support/gateway-process.ts';
import { openRawClient, type RawResponse } from '../support/raw-http.ts';
import { fieldLines, type RecordingBackend, startRecordingBackend } from '../support/recording-backend.ts';

const key = makeCustomKey(1_000_000, 1_000_000);
const bearer = `Authorization: Bearer ${key.secret}`;
const webSocket = [
  'Connection: Upgrade',
  'Upgrade: websocket',
  'Sec-WebSocket-Version: 13',
  'Sec-WebSocket-Key: dGVzdA==',
];

let backend: RecordingBackend;
let files: RecordingBackend;
let gateway: RunningGateway;

beforeAll(async () => {
  backend = await startRecordingBackend();
  files = await startRecordingBackend();
  const described = { responses: { 200: { description: 'It went well.' } } };
  const operation = (operationId: string, more = {}) => ({ get: { operationId, ...described, ...more } });
  const ofFiles = { 'x-upstream': 'files' };
  gateway = await startGatewayHere(
    testConfig({
      upstreams: {
        pets: { url: backend.url, health: '/healthz' },
        files: { url: files.url, health: '/healthz', encodedSlashes: 'forward' },
      },
      keys: [key.entry],
      api: './api.yaml',
      docsPath: '/docs',
    }),
    {
      files: {
        'api.yaml': {
          openapi: '3.1.0',
          info: { title: 'Test', version: '1.0.0' },
          paths: {
            '/pets': operation('listPets'),
            '/pets/mine': operation('listMine'),
            '/pets/{petId}': operation('getPet'),
            '/tags[0]/a|b': operation('getTag'),
            '/feed': operation('feed', { 'x-upgrade': 'websocket' }),
            '/files/{name}': operation('getFile', ofFiles),
            '/files/{name}/parts': operation('getParts', ofFiles),
            '/stream/{name}': operation('stream', { 'x-upgrade': 'websocket', ...ofFiles }),
          },
        },
      },
      tuning: { windowsMs: freshWindows(Date.now()) },
    },
  );
});
beforeEach(() => {
  backend.requests.length = 0;
  files.requests.length = 0;
});
afterAll(async () => {
  await gateway.stop();
  await backend.close();
  await files.close();
});

/** Sends one request on a new connection. @returns the response, and the access line */
async function ask(
  ...lines: string[]
): Promise<{ response: RawResponse; line: Record<string, unknown> | undefined }> {
  const client = await openRawClient(gateway.port);
  client.send([...lines, '', ''].join('\r\n'));
  try {
    const response = await client.response();
    const id = response.headers.get('x-request-id');
    return { response, line: await gateway.line((entry) => entry.requestId === id) };
  } finally {
    client.destroy();
  }
}

/** Sends a GET with a key. */
const get = (target: string, ...fields: string[]) =>
  ask(`GET ${target} HTTP/1.1`, 'Host: a', bearer, ...fields);

const targets = ({ requests }: RecordingBackend) => requests.map(({ target }) => target);

describe('a target in absolute form', () => {
  it('is forwarded in origin form, with its host in place of Host', async () => {
    const { response, line } = await get('http://api.example.com:8080/v1/pets?limit=5');
    expect(response.status).toBe(200);
    expect(line).toMatchObject({ operation: 'listPets', path: '/v1/pets' });
    expect(targets(backend)).toEqual(['/v1/pets?limit=5']);
    const [request] = backend.requests;
    const fields = (request && fieldLines(request)) ?? [];
    expect(fields.filter((field) => /host:/i.test(field))).toEqual([
      'Host: api.example.com:8080',
      'X-Forwarded-Host: api.example.com:8080',
    ]);
  });

  it('opens a WebSocket', async () => {
    const accepts = 'HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n';
    backend.react = (_request, socket) => void socket.write(accepts);
    const { response } = await get('http://b:/v1/f%65ed', ...webSocket);
    expect(response.status).toBe(101);
    expect(backend.requests[0]?.head).toMatch(/^GET \/v1\/f%65ed HTTP\/1\.1\r\nHost: b\r\n/);
    backend.react = (_request, socket) => void socket.end('HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n');
  });

  it('finds a page of the gateway', async () => {
    const { response } = await get('http://api.example.com/openapi.json');
    expect(JSON.parse(response.body)).toMatchObject({ openapi: '3.1.0' });
  });

  it('is refused with https on a connection without TLS', async () => {
    const { response } = await get('https://api.example.com/v1/pets');
    expect(response.status).toBe(400);
    expect(backend.requests).toEqual([]);
  });
});

it('an empty port in Host is accepted', async () => {
  const { response } = await ask('GET /v1/pets HTTP/1.1', 'Host: api.example.com:', bearer);
  expect(response.status).toBe(200);
  expect(backend.requests[0]?.head).toContain('\r\nHost: api.example.com\r\n');
});

describe('an escaped letter, digit or "-._~"', () => {
  it.each([
    ['/v1/p%65ts', 'listPets'],
    ['/%761/pets/%7Eada', 'getPet'],
    ['/v1/tags[0]/a|b', 'getTag'],
    ['/v1/pets/%5B0%5D%7C', 'getPet'],
  ])('%s is forwarded as it is, and is a call of %s', async (target, operation) => {
    const { response, line } = await get(target);
    expect(response.status).toBe(200);
    expect(line).toMatchObject({ operation, path: target });
    expect(targets(backend)).toEqual([target]);
  });

  it('finds a page of the gateway', async () => {
    const { response } = await get('/openapi.jso%6e');
    expect(JSON.parse(response.body)).toMatchObject({ openapi: '3.1.0' });
  });

  it('must not hide which of two operations is called', async () => {
    const { response, line } = await get('/v1/pets/%6Dine');
    expect(response.status).toBe(400);
    expect(line).toMatchObject({ operation: 'listMine', keyId: key.entry.id, fault: 'client' });
    expect(line?.cause).toMatch(/another operation/);
    expect(backend.requests).toEqual([]);
  });
});

describe('an escaped slash', () => {
  it('is refused after the checks of key and limits, unless the upstream forwards it', async () => {
    const { response, line } = await get('/v1/pets/a%2Fb');
    expect(response.status).toBe(400);
    expect(JSON.parse(response.body).message).toBe('The path must not have escaped slashes.');
    expect(line).toMatchObject({ operation: 'getPet', keyId: key.entry.id, error: 'invalid_request' });
    expect(line?.cause).toMatch(/`pets`.*encodedSlashes/);
    expect(backend.requests).toEqual([]);

    const unknown = await ask('GET /v1/pets/a%2Fb HTTP/1.1', 'Host: a');
    expect(unknown.response.status).toBe(401);
  });

  it.each(['/v1/files/group%2Fname', '/v1/files/a%2fparts?x=%2F', '/v1/files/%2Fetc%2f'])(
    '%s stays in its segment, and is forwarded as it is',
    async (target) => {
      const { response, line } = await get(target);
      expect(response.status).toBe(200);
      expect(line).toMatchObject({ operation: 'getFile', path: target.split('?')[0] });
      expect(targets(files)).toEqual([target]);
    },
  );

  it.each(['/v1/files%2Fa', '/v1%2Ffiles/a', '/v1/files/a/b%2Fparts'])(
    '%s matches no operation',
    async (target) => {
      expect((await get(target)).response.status).toBe(404);
      expect(files.requests).toEqual([]);
    },
  );

  it.each(['/v1/files/..%2Fpets', '/v1/files/a%2F%2e%2E%2fpets', '/v1/files/a%252Fb', '/v1/files/a%5Cb'])(
    '%s is refused even if the upstream forwards escaped slashes',
    async (target) => {
      expect((await get(target)).response.status).toBe(400);
      expect(files.requests).toEqual([]);
    },
  );

  it('is judged in the same way in the handshake of a WebSocket', async () => {
    files.react = (_request, socket) =>
      void socket.write(
        'HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n',
      );
    expect((await get('/v1/stream/a%2Fb', ...webSocket)).response.status).toBe(101);
    expect(targets(files)).toEqual(['/v1/stream/a%2Fb']);
    expect((await get('/v1/fe%2Fed', ...webSocket)).response.status).toBe(404);
  });
});
