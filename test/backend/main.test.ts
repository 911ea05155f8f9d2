import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { connect } from 'node:net';
import { fileURLToPath } from 'node:url';
import { describe, expect, it, onTestFinished } from 'vitest';

const main = fileURLToPath(new URL('../../backend/main.ts', import.meta.url));

describe('the store as a process', () => {
  it.each(['SIGTERM', 'SIGINT'] as const)('ends with status 0 and no stack after %s', async (signal) => {
    const store = runStore();
    await store.listening();
    store.child.kill(signal);
    expect(await store.exitStatus).toBe(0);
    expect(store.output()).toContain('store stopped');
    expect(store.output()).not.toMatch(/error| {4}at /i);
  });

  it('logs in the format of the gateway: an ISO time, and no field that is the same on every line', async () => {
    const store = runStore();
    await store.listening();
    const [line = ''] = store.output().split('\n', 1);
    expect(JSON.parse(line)).toEqual({
      level: 30,
      time: expect.stringMatching(/^\d{4}-\d\d-\d\dT[\d:.]+Z$/),
      msg: expect.stringContaining('store listening at http://127.0.0.1:'),
    });
  });

  it('finishes a response in flight before it exits, and does not wait for a silent connection', async () => {
    const store = runStore();
    const url = await store.listening();
    const port = Number(new URL(url).port);
    const silent = connect(port, '127.0.0.1').on('error', () => undefined);
    const busy = connect(port, '127.0.0.1');
    let response = '';
    busy.on('data', (chunk) => {
      response += chunk;
    });
    await Promise.all([once(silent, 'connect'), once(busy, 'connect')]);
    const body = '{"name":"n","categoryId":1}';
    const head = `Host: a\r\nContent-Type: application/json\r\nContent-Length: ${body.length}`;
    busy.write(`POST /v1/pets HTTP/1.1\r\n${head}\r\n\r\n`);
    // The store has read the head on the other connection once it answers this request.
    await (await fetch(`${url}/healthz`)).text();
    store.child.kill('SIGTERM');
    await store.line('store stopping');
    busy.write(body);
    await once(busy, 'close');
    expect(response).toMatch(/^HTTP\/1.1 201 /);
    expect(response).toMatch(/connection: close/i);
    expect(await store.exitStatus).toBe(0);
  });

  it('prints one clear line and exits with 1 when its port is in use', async () => {
    const first = runStore();
    const { port } = new URL(await first.listening());
    const second = runStore({ PORT: port });
    expect(await second.exitStatus).toBe(1);
    const lines = second.output().trim().split('\n');
    expect(lines).toHaveLength(1);
    expect(JSON.parse(lines[0] ?? '').msg).toBe(
      `port ${port} is in use on 127.0.0.1: set PORT to another one`,
    );
  });

  for (const env of [{ PORT: 'x' }, { PORT: '65536' }, { STORE_SEED: 'all' }, { HOST: '203.0.113.1' }])
    it(`prints one clear line and exits with 1 for ${JSON.stringify(env)}`, {
      tags: env.PORT === 'x' ? [] : ['full'],
    }, async () => {
      const store = runStore(env);
      expect(await store.exitStatus).toBe(1);
      expect(store.output().trim().split('\n')).toHaveLength(1);
      expect(JSON.parse(store.output()).msg).toContain(Object.values(env)[0]);
    });

  it('is empty, unless STORE_SEED=demo asks for a few animals', async () => {
    const counts = [];
    for (const STORE_SEED of ['', 'demo']) {
      const url = await runStore({ STORE_SEED }).listening();
      const pets = (await (await fetch(`${url}/v1/pets`)).json()) as unknown[];
      counts.push(pets.length);
    }
    expect(counts).toEqual([0, 5]);
  });
});

function runStore(env: Record<string, string> = {}) {
  const child = spawn(process.execPath, [main], { env: { PORT: '0', HOST: '127.0.0.1', ...env } });
  // The parent may not have read the last output when the child emits `exit`.
  const exitStatus = once(child, 'close').then(([status]) => status as number | null);
  onTestFinished(async () => {
    child.kill('SIGKILL');
    await exitStatus;
  });
  let text = '';
  for (const stream of [child.stdout, child.stderr]) {
    stream.on('data', (chunk) => {
      text += chunk;
    });
  }

  /** Waits until the output of the store contains these words. @returns the whole output */
  async function line(words: string): Promise<string> {
    while (!text.includes(words)) await once(child.stdout, 'data');
    return text;
  }

  return {
    child,
    exitStatus,
    line,
    output: () => text,
    listening: async () => /http:\/\/127\.0\.0\.1:\d+/.exec(await line('listening'))?.[0] ?? '',
  };
}
