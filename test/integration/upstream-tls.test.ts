import { rename, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { TLSSocket } from 'node:tls';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { createAuthority, type KeyPair } from '../support/certificates.ts';
import { startGatewayHere } from '../support/gateway-here.ts';
import { makeKey, type RunningGateway, testConfig } from '../support/gateway-process.ts';
import { okResponse, type RecordingBackend, startRecordingBackend } from '../support/recording-backend.ts';
import { until } from '../support/until.ts';

const key = makeKey({ plan: 'business' });
const authority = createAuthority();
const [first, renewed] = [authority.issue({ names: ['a.test'] }), authority.issue({ names: ['b.test'] })];
let backend: RecordingBackend;
let gateway: RunningGateway;
/** For each request, the name in the client certificate of the gateway. */
let shown: string[];

beforeEach(async () => {
  shown = [];
  backend = await startRecordingBackend({
    tls: {
      ...authority.issue({ names: ['localhost'] }),
      ca: authority.cert,
      requestCert: true,
      rejectUnauthorized: true,
    },
    react: (_request, socket) => {
      shown.push((socket as TLSSocket).getPeerCertificate().subjectaltname ?? '');
      socket.write(okResponse('{}'));
    },
  });
  gateway = await startGatewayHere(
    testConfig({ keys: [key.entry], upstream: { url: 'http://127.0.0.1:9' } }),
    {
      tuning: { bounds: { connectTimeoutMs: 20_000, healthTimeoutMs: 20_000 } },
    },
  );
  await write('ca.pem', authority.cert);
  await writePair(first);
  await gateway.editConfig(config());
  await until('requests are answered', async () => (await ask()) === 200);
});

afterEach(async () => {
  await gateway.stop('SIGKILL');
  await backend.close();
});

const config = () =>
  testConfig({
    keys: [key.entry],
    upstream: {
      url: `https://localhost:${backend.port}`,
      tls: { ca: 'ca.pem', cert: 'cert.pem', key: './key.pem' },
    },
  });

async function write(name: string, text: string): Promise<void> {
  await writeFile(join(gateway.configDir, `${name}.draft`), text);
  await rename(join(gateway.configDir, `${name}.draft`), join(gateway.configDir, name));
}

async function writePair({ cert, key: privateKey }: KeyPair): Promise<void> {
  await write('cert.pem', cert);
  await write('key.pem', privateKey);
}

async function ask(): Promise<number> {
  const response = await fetch(`${gateway.baseUrl}/pets`, {
    headers: { Authorization: `Bearer ${key.secret}` },
  });
  await response.text();
  return response.status;
}

async function readyz() {
  const text = await (await fetch(`${gateway.adminUrl}/readyz`)).text();
  return { text, body: JSON.parse(text) as { status: string; config: { lastError?: string } } };
}

function expectNoPrivateKey(text: string): void {
  for (const pair of [first, renewed]) expect(text).not.toContain(pair.key.split('\n')[1]);
  expect(text).not.toContain('PRIVATE KEY-----\\n');
}

it('a client certificate that is replaced on disk is used for new connections, and no request fails during the change', async () => {
  const statuses = new Set<number>();
  await writePair(renewed);
  await until('the new one is shown', async () => {
    statuses.add(await ask());
    return shown.at(-1) === 'DNS:b.test';
  });
  expect([...statuses]).toEqual([200]);
  expectNoPrivateKey(gateway.output());
});

it('a broken client certificate and key change nothing, and are reported in the log and /readyz without the key', {
  tags: 'full',
}, async () => {
  await write('key.pem', renewed.key);
  await until('/readyz says so', async () => (await readyz()).body.config.lastError !== undefined);
  const { text, body } = await readyz();
  expect(body.config.lastError).toMatch(
    /key\.pem:1:1: this key does not belong to the \(first\) certificate/,
  );
  expect(await ask()).toBe(200);
  expect(shown.at(-1)).toBe('DNS:a.test');
  expectNoPrivateKey(text + gateway.output());
});

it('a backend whose certificate is not trusted gets no request, and the reason is reported', async () => {
  await write('ca.pem', createAuthority('Another').cert);
  await until('the target is down', async () => (await readyz()).body.status === 'degraded');
  expect((await readyz()).text).toContain('self-signed certificate in certificate chain');
  const { length } = shown;
  expect(await ask()).toBe(503);
  expect(shown).toHaveLength(length);
  await gateway.line(({ msg, reason }) => /is down/.test(String(msg)) && /self-signed/.test(String(reason)));
});
