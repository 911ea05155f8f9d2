import { pino } from 'pino';
import { onTestFinished } from 'vitest';
import { stringify } from 'yaml';
import { askAdmin, makeToken } from '../support/admin-client.ts';
import { createGateway } from '../support/create-gateway.ts';
import { makeKey } from '../support/gateway-process.ts';
import { okResponse, startRecordingBackend } from '../support/recording-backend.ts';
import { settingsOf } from '../support/settings-of.ts';
import { tunedBounds } from '../support/tuned-bounds.ts';
import { patientGateway } from '../support/tuning.ts';

const operations = {
  '/pets': { operationId: 'listPets' },
  '/report': { operationId: 'createReport' },
  '/export': { operationId: 'exportReport', 'x-cost': 2 },
  '/yearly': { operationId: 'yearly', 'x-cost': 25 },
};
const api = {
  openapi: '3.1.0',
  info: { title: 'Test', version: '1.0.0' },
  paths: Object.fromEntries(Object.entries(operations).map(([path, get]) => [path, { get }])),
};
export const reports = { operations: ['createReport', 'exportReport'], perMinute: 5, perHour: 8 };
export const exports = { operations: ['exportReport', 'yearly'], perDay: 20 };
export const plan = { perMinute: 60, perDay: 1_000, groups: { reports, exports } };
export const token = makeToken('write', 'ada');
/** A name of the largest length, which has no place to break. */
export const longGroup = 'x'.repeat(40);
/** The beginning of a day. */
export const startMs = Date.UTC(2026, 10, 24);

/** A gateway whose clock the test sets, and functions to send requests with its key. */
export async function startGroups({
  key = makeKey({ id: 'acme', plan: 'small' }),
  plans = { small: plan },
  atMs = startMs,
  settings = {},
}: {
  readonly key?: ReturnType<typeof makeKey>;
  readonly plans?: object;
  readonly atMs?: number;
  /** Further settings. */
  readonly settings?: object;
} = {}) {
  let nowMs = atMs;
  const backend = await startRecordingBackend({ react: (_, socket) => socket.write(okResponse('[]')) });
  const lines: Record<string, unknown>[] = [];
  const gateway = createGateway({
    settings: await settingsOf(
      {
        upstream: { url: backend.url, health: '/healthz' },
        plans,
        api: 'groups.yaml',
        ...settings,
        keys: [key.entry],
        bans: { after: 1_000 },
        admin: { host: '127.0.0.1', port: 0, tokens: [token.entry] },
      },
      { 'groups.yaml': stringify(api) },
    ),
    log: { logger: pino({ level: 'silent' }), access: (line) => void lines.push(JSON.parse(line)) },
    bounds: tunedBounds(patientGateway),
    nowMs: () => nowMs,
  });
  const { listen, admin } = await gateway.start();
  onTestFinished(async () => {
    await gateway.drain({ graceMs: 0 });
    await backend.close();
  });
  const send = async (path: string, basePath = '/v1') => {
    const url = `http://127.0.0.1:${listen.port}${basePath}${path}`;
    const response = await fetch(url, { headers: { authorization: `Bearer ${key.secret}` } });
    const body = await response.json();
    const field = (name: string) => response.headers.get(name);
    /** The names and the remaining units of `RateLimit`, the names and limits of `RateLimit-Policy`, and `X-RateLimit-*`. */
    const fields = {
      left: field('ratelimit')?.replaceAll(/"|;t=\d+/g, ''),
      policy: field('ratelimit-policy')?.replaceAll(/"|;w=\d+/g, ''),
      x: ['limit', 'remaining', 'reset'].map((name) => Number(field(`x-ratelimit-${name}`))),
    };
    return { status: response.status, body, field, fields };
  };
  const show = async (path: string) =>
    (await askAdmin(admin.port, `/api/v1${path}`, { token: token.token })).body;
  const wait = (ms: number) => {
    nowMs += ms;
  };
  return { key, send, show, wait, lines, port: listen.port, adminPort: admin.port, nowMs: () => nowMs };
}
