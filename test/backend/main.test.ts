import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { connect } from 'node:net';
import { fileURLToPath } from 'node:url';
import { describe, expect, it, onTestFinished } from 'vitest';

const main = fileURLToPath(new URL('../../backend/main.ts', import.meta.url));

describe('the store as a process', () => {
  it('logs in the format of the gateway, and ends with status 0 and no stack after SIGINT', async () => {
    const store = runStore({ STORE_SEED: 'demo' });
    expect(await petsOf(await store.listening())).toBe(5);
    const [line = ''] = store.output().split('\n', 1);
    expect(JSON.parse(line)).toEqual({
      level: 30,
      time: expect.stringMatching(/^\d{4}-\d\d-\d\dT[\d:.]+Z$/),
      msg: expect.stringContaining('store listening at http://127.0.0.1:'),
    });
    store.child.kill('SIGINT');
    expect(await store.exitStatus).toBe(0);
    expect(store.output()).toContain('store stopped');
    expect(store.output()).not.toMatch(/error| {4}at /i);
  });

  it('finishes a response in flight before it exits after SIGTERM, and does not wait for a silent connection; a second one on its port prints one clear line', async () => {
    const store = runStore();
    const url = await store.listening();
    const port = Number(new URL(url).port);
    expect(await petsOf(url)).toBe(0);
    const second = runStore({ PORT: `${port}` });
    expect(await second.exitStatus).toBe(1);
    const lines = second.output().trim().split('\n');
    expect(lines.map((line) => JSON.parse(line).msg)).toEqual([
      `port ${port} is in use on 127.0.0.1: set PORT to another one`,
    ]);
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
    // When the pet store answers this request, it has already read the request head on the other connection.
    await (await fetch(`${url}/healthz`)).text();
    store.child.kill('SIGTERM');
    await store.line('store stopping');
    busy.write(body);
    await once(busy, 'close');
    expect(response).toMatch(/^HTTP\/1.1 201 /);
    expect(response).toMatch(/connection: close/i);
    expect(await store.exitStatus).toBe(0);
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
});

async function petsOf(url: string): Promise<number> {
  const pets = (await (await fetch(`${url}/v1/pets`)).json()) as unknown[];
  return pets.length;
}

function runStore(env: Record<string, string> = {}) {
  const child = spawn(process.execPath, [main], { env: { PORT: '0', HOST: '127.0.0.1', ...env } });
  // The parent may still have unread output when the child emits `exit`.
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

  /** Waits until the output of the pet store contains these words. @returns the whole output */
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
