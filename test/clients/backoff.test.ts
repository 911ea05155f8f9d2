import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { resolve } from 'node:path';
import { text } from 'node:stream/consumers';
import { afterAll, beforeAll, describe, test } from 'vitest';
import { startGatewayHere } from '../support/gateway-here.ts';
import { makeCustomKey, type RunningGateway, testConfig } from '../support/gateway-process.ts';
import {
  fieldLines,
  okResponse,
  type RecordedRequest,
  type RecordingBackend,
  startRecordingBackend,
} from '../support/recording-backend.ts';
import { requireProgram } from '../support/require-program.ts';
import { until } from '../support/until.ts';

const windowMs = 4_000;
const perMinute = 10;

const clients = [
  {
    language: 'JavaScript',
    program: async () => process.execPath,
    args: [
      '--input-type=module',
      '-e',
      `const { createClient } = await import(${JSON.stringify(resolve('test/clients/backoff.mjs'))});
       const [baseUrl, key, method, count] = process.argv.slice(1);
       const request = createClient(baseUrl, key);
       for (let i = 0; i < count; i++) console.log((await request('/pets', { method })).status);`,
    ],
  },
  {
    language: 'Python',
    program: () =>
      requireProgram({
        names: ['python3'],
        packageName: 'python3',
        advice: 'The test of test/clients/backoff.py needs Python 3 and found none: put python3 on the PATH.',
      }),
    args: [
      '-c',
      `import sys; sys.path.insert(0, ${JSON.stringify(resolve('test/clients'))}); sys.dont_write_bytecode = True
from backoff import Client
base_url, key, method, count = sys.argv[1:]
client = Client(base_url, key)
for _ in range(int(count)): print(client.request("/pets", method)[0])`,
    ],
  },
];

/** Each test has its own key, so that the tests can run at the same time on one gateway. */
const tests = ['alone', 'late', 'flaky-get', 'flaky-post'].flatMap((name) =>
  clients.map(({ language }) => [`${name}-${language}`, makeCustomKey(perMinute, 1_000_000)] as const),
);
const keys = new Map<string, ReturnType<typeof makeCustomKey>>(
  tests.map(([id, { entry, secret }]) => [id, { entry: { ...entry, id }, secret }]),
);

let gateway: RunningGateway;
let backend: RecordingBackend;

beforeAll(async () => {
  const failed = new Set<string>();
  backend = await startRecordingBackend({
    react: (request, socket) => {
      const id = keyIdOf(request);
      const fails = id.startsWith('flaky') && !failed.has(id);
      failed.add(id);
      socket.write(fails ? okResponse('{}', 503, ['Retry-After: 2']) : okResponse('{}'));
    },
  });
  const entries = [...keys.values()].map(({ entry }) => entry);
  // Some requests of these tests come from clients that do not back off, so the configuration turns bans off.
  const bans = { after: 1_000_000 };
  const config = testConfig({ upstream: { url: backend.url }, keys: entries, bans });
  gateway = await startGatewayHere(config, { tuning: { windowsMs: { minute: windowMs } } });
});

afterAll(async () => {
  await gateway.stop();
  await backend.close();
});

describe.concurrent.each(clients)('the client in $language', ({ language, program, args }) => {
  /** Sends requests one after the other. @returns the statuses that the caller of the client gets */
  async function send(id: string, method: string, count: number) {
    const { secret = '' } = keys.get(id) ?? {};
    const child = spawn(await program(), [...args, gateway.baseUrl, secret, method, String(count)], {
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    const [output] = await Promise.all([text(child.stdout), once(child, 'exit')]);
    return output.trim().split('\n').map(Number);
  }

  test('slows down before the limit is spent, and never gets a 429 when no other client uses its key', async ({
    expect,
  }) => {
    const id = `alone-${language}`;
    const count = 2 * perMinute + 1;
    expect(await send(id, 'GET', count)).toEqual(Array(count).fill(200));
    await until('all lines', () => linesOf(id).length >= count);
    const decisions = linesOf(id).map(({ decision }) => decision);
    expect(decisions).toEqual(Array(count).fill('admitted'));
  });

  test('waits at least Retry-After on a 429 and then retries, also a POST', async ({ expect }) => {
    const id = `late-${language}`;
    const posts = () => linesOf(id).filter(({ method }) => method === 'POST');
    const isRefused = () => posts().some(({ decision }) => decision === 'refused');
    // Other requests with the same key use up each window, until the client has received a 429.
    const others = async () => {
      const headers = { authorization: `Bearer ${keys.get(id)?.secret}` };
      while (!isRefused()) await fetch(`${gateway.baseUrl}/pets`, { headers });
    };
    const client = async () => {
      while (!isRefused()) expect(await send(id, 'POST', 1)).toEqual([200]);
    };
    await Promise.all([others(), client()]);
    await until('the admitted POST', () => posts().at(-1)?.decision === 'admitted');
    for (const [i, line] of posts().entries()) {
      // The value of `Retry-After` is always at least one second.
      if (line.decision === 'refused')
        expect(startedMsOf(posts()[i + 1]) - startedMsOf(line)).toBeGreaterThan(950);
    }
  });

  test('retries a GET after a 503, no earlier than Retry-After, but not a POST', async ({ expect }) => {
    const [get, post] = [`flaky-get-${language}`, `flaky-post-${language}`];
    expect(await send(get, 'GET', 1)).toEqual([200]);
    expect(await send(post, 'POST', 1)).toEqual([503]);
    const sent = backend.requests.filter((request) => [get, post].includes(keyIdOf(request)));
    expect(sent.map(({ method }) => method)).toEqual(['GET', 'GET', 'POST']);
    await until('both lines', () => linesOf(get).length === 2);
    const [failed, repeated] = linesOf(get);
    expect(startedMsOf(repeated) - startedMsOf(failed)).toBeGreaterThanOrEqual(1_950);
  });
});

/** The log lines of a key's requests so far. */
function linesOf(id: string) {
  return gateway.lines.filter(({ keyId }) => keyId === id);
}

/** The time at which a request began. The request's log line may be written long after the response. */
function startedMsOf(line: Record<string, unknown> | undefined): number {
  return Date.parse(`${line?.time}`) - Number(line?.totalMs);
}

function keyIdOf(request: RecordedRequest): string {
  const field = fieldLines(request).find((line) => line.startsWith('X-Key-Id: '));
  return field?.slice('X-Key-Id: '.length) ?? '';
}
