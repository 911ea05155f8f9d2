import { randomUUID } from 'node:crypto';
import { gzipSync } from 'node:zlib';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { requestStory } from '../../../gateway/admin/words/request-story.js';
import { findRequest } from '../../../gateway/cli/request/find-request.ts';
import { configFolder } from '../../support/config-folder.ts';
import { freshWindows } from '../../support/fresh-windows.ts';
import { startGatewayHere } from '../../support/gateway-here.ts';
import { makeCustomKey, makeKey, type RunningGateway, testConfig } from '../../support/gateway-process.ts';
import { okResponse, type RecordingBackend, startRecordingBackend } from '../../support/recording-backend.ts';
import { runTollgate } from '../../support/run-tollgate.ts';
import { tunedBounds } from '../../support/tuned-bounds.ts';

const key = makeCustomKey(3, 1_000);
const disabled = makeKey({ id: 'closed', disabled: true });

let backend: RecordingBackend;
let gateway: RunningGateway;
beforeAll(async () => {
  backend = await startRecordingBackend({
    react: ({ target }, socket) => socket.write(okResponse('{}', target.endsWith('/404') ? 404 : 200)),
  });
  const keys = [key.entry, disabled.entry];
  const windowsMs = freshWindows(Date.now());
  gateway = await startGatewayHere(testConfig({ upstream: { url: backend.url }, keys }), {
    tuning: { windowsMs },
  });
});
afterAll(async () => {
  await gateway.stop('SIGKILL');
  await backend.close();
});

/** Sends a request. @returns its id, once the log has the request's line */
async function send(secret: string, path: string, method = 'GET'): Promise<string> {
  const headers = { authorization: `Bearer ${secret}` };
  const response = await fetch(`${gateway.baseUrl}${path}`, { method, headers });
  await response.arrayBuffer();
  const id = response.headers.get('x-request-id') ?? '';
  await gateway.line(({ requestId }) => requestId === id);
  return id;
}

/** The log as the text of a log file. */
function logText(): string {
  return `${gateway.lines.map((line) => JSON.stringify(line)).join('\n')}\n`;
}

async function why(id: string, files: Record<string, string | Uint8Array>, stdin?: string | Uint8Array) {
  const { pathOf } = configFolder(files);
  const names = Object.keys(files).map(pathOf);
  return runTollgate(['why', id, '--log', ...names, ...(stdin === undefined ? [] : ['-'])], {}, stdin);
}

describe('why of a request', () => {
  it('explains it from the log of a gateway: key, request, status, limit and cause', async () => {
    const ok = await send(key.secret, '/pets');
    const missing = await send(key.secret, '/pets/404');
    const notFound = await send(key.secret, '/nowhere');
    const refused = await send(key.secret, '/pets');
    const unknown = await send('no-such-secret', '/pets');
    const closed = await send(disabled.secret, '/pets');
    const log = { 'gateway.log': logText() };
    const who = `\\(listPets\\) of ${key.entry.id} \\(enterprise\\) from 127\\.0\\.0\\.1, on \\d{4}-\\d\\d-\\d\\d at [\\d:.]+ UTC,`;
    const took = 'after [\\d.]+ ms';
    const expected = [
      [
        ok,
        `^GET /v1/pets ${who} was answered 200 by 127\\.0\\.0\\.1:\\d+ ${took}, of which [\\d.]+ ms passed at the upstream\\. It was admitted, and left 2 of the 3 requests of that minute\\.\n$`,
      ],
      [missing, 'was answered 404 by 127\\..*\\. It was admitted, .*; the client must act\\.\n$'],
      [
        notFound,
        'was answered 404 \\(not_found\\) by the gateway .*\\. It was admitted, and left 0 of the 3 requests',
      ],
      [
        refused,
        `^GET /v1/pets ${who} was answered 429 \\(rate_limited\\) by the gateway ${took}\\. The key had used all 3 requests of that minute; the client must act\\.\n$`,
      ],
      [
        unknown,
        'from 127\\.0\\.0\\.1, .* was answered 401 \\(invalid_key\\) .* Its secret, with a SHA-256 that begins with [0-9a-f]{8}, belongs to no key;',
      ],
      [closed, 'was answered 401 \\(invalid_key\\) .*\\. Its key closed is disabled;'],
    ] as const;
    for (const [id, sentence] of expected) {
      const { exitCode, stdout, stderr } = await why(id, log);
      expect({ exitCode, stderr }).toEqual({ exitCode: 0, stderr: '' });
      expect(stdout).toMatch(new RegExp(sentence));
    }
    const json = await runTollgate([
      'why',
      refused,
      '--log',
      configFolder(log).pathOf('gateway.log'),
      '--json',
    ]);
    expect(JSON.parse(json.stdout)).toEqual(gateway.lines.find(({ requestId }) => requestId === refused));
  });

  it('finds it in a compressed file of any name, in several members, after names of containers, and in standard input', async () => {
    const id = await send(key.secret, '/pets');
    const text = logText();
    const half = text.indexOf('\n', text.length / 2) + 1;
    const members = Buffer.concat([gzipSync(text.slice(0, half)), gzipSync(text.slice(half))]);
    const prefixed = text.replaceAll(/^/gm, 'gateway-1  | ');
    const found = await why(id, { 'gateway.log': text });
    expect(found.stdout).toMatch(/^GET /);
    for (const files of [
      { 'a.log': gzipSync(text) },
      { 'a.log': members },
      { 'a.log': prefixed },
      { 'a.gz': text },
    ]) {
      expect(await why(id, files)).toEqual(found);
    }
    for (const stdin of [text, gzipSync(text)]) expect(await why(id, {}, stdin)).toEqual(found);
    expect(await why(id, { 'empty.log': '', 'other.log': '{"time":"x"}\n' }, text)).toEqual(found);
    expect(await why(id.slice(0, 8), { 'a.log': text })).toEqual(found);
    expect(await why(id.toUpperCase(), { 'a.log': text })).toEqual(found);
    const { pathOf } = configFolder({ 'a.log': text });
    expect(await runTollgate(['why', '--log', pathOf('a.log'), id])).toEqual(found);
  });

  it('that is not in the log prints how many lines were read, and their period', async () => {
    const line = (at: string) =>
      `${JSON.stringify({ level: 30, time: at, requestId: randomUUID(), status: 200 })}\n`;
    const id = randomUUID();
    const files = {
      'new.log': line('2026-11-22T10:00:01.000Z') + line('2026-11-22T11:30:00.000Z'),
      'old.log': gzipSync(`not JSON\n${line('2026-11-21T09:00:00.000Z')}`),
    };
    expect(await why(id, files)).toEqual({
      exitCode: 1,
      stdout: '',
      stderr: `No request ${id}: 4 lines were read (1 of them is not from a JSON log), from 2026-11-21 09:00:00 to 2026-11-22 11:30:00 UTC. Is the request of another time, or of another gateway?\n`,
    });
    const none = await why(id, { 'passwd.log': 'root\nme\n' });
    expect(none.stderr).toBe(
      `No request ${id}: 2 lines were read, but none is a line of a gateway's JSON log. A gateway writes this log to standard output.\n`,
    );
  });

  it('fails with a sentence when a file is missing or cut off, or the id is invalid', async () => {
    const id = randomUUID();
    const text = gzipSync(Array.from({ length: 1_000 }, () => randomUUID()).join('\n'));
    const cases: [Awaited<ReturnType<typeof why>>, RegExp][] = [
      [
        await runTollgate(['why', id, '--log', '/nowhere.log']),
        /^\/nowhere\.log cannot be read as a log \(ENOENT/,
      ],
      [
        await why(id, { 'cut.log': text.subarray(0, 5_000) }),
        /cut\.log cannot be read as a log \(unexpected end of file\)/,
      ],
      [await why('acme', { 'a.log': '' }), /^The id of a request is the X-Request-Id of its response/],
    ];
    for (const [{ exitCode, stdout, stderr }, sentence] of cases) {
      expect({ exitCode, stdout }).toEqual({ exitCode: 1, stdout: '' });
      expect(stderr).toMatch(sentence);
    }
  });

  it('needs --log, and says so with and without a reachable gateway', async () => {
    const id = randomUUID();
    const { exitCode, stderr } = await runTollgate(['why', id]);
    expect(exitCode).toBe(1);
    expect(stderr).toMatch(
      /looks like the id of a request: set --log FILE to the log .*, or --log - for standard input\./,
    );
    const bare = await runTollgate(['why']);
    expect(bare).toMatchObject({
      exitCode: 1,
      stdout: '',
      stderr: expect.stringMatching(/^Which key or request\? /),
    });
  });
});

describe('the search', () => {
  const bounds = tunedBounds({ logLineReadBytesMax: 1_000 });
  const search = (text: string, requestId: string) => {
    const folder = configFolder({ 'a.log': text });
    return findRequest({ requestId, files: [folder.pathOf('a.log')], stdin: process.stdin }, bounds);
  };
  const id = randomUUID();
  const access = JSON.stringify({ time: '2026-11-22T10:00:00.000Z', requestId: id, status: 200 });

  it('skips a line that is longer than the bound, and continues after it', async () => {
    const endless = `{"time":"2026-11-22T09:00:00.000Z","x":"${'y'.repeat(3_000_000)}"}\n`;
    const found = await search(`${endless}${endless}${access}`, id);
    expect(found).toMatchObject({ entry: { requestId: id } });
  });

  it('ignores a line that only mentions the id, and adds other log lines about the request', async () => {
    const mention = JSON.stringify({
      time: '2026-11-22T09:00:00.000Z',
      requestId: 'x',
      path: `"requestId":"${id}"`,
    });
    const nested = JSON.stringify({
      time: '2026-11-22T09:00:00.000Z',
      status: 200,
      other: { requestId: id },
    });
    const bug = JSON.stringify({
      time: '2026-11-22T09:59:59.000Z',
      requestId: id,
      msg: 'a bug in the request path',
    });
    const broken = `{"time":"2026-11-22T09:59:59.000Z","requestId":"${id}"`;
    const found = await search([mention, nested, broken, bug, access].join('\n'), id);
    expect(found).toMatchObject({
      entry: { status: 200 },
      events: [{ msg: 'a bug in the request path' }],
    });
    expect(requestStory(found.entry ?? {}, found.events)).toMatch(
      /The log also says: a bug in the request path\.$/,
    );
    expect(await search([mention, nested, broken].join('\n'), id)).toMatchObject({
      entry: undefined,
      read: { lines: 3 },
    });
  });
});

describe('the story of a request', () => {
  const common = {
    ...{
      time: '2026-11-22T10:31:07.123Z',
      method: 'GET',
      path: '/v1/pets',
      operation: 'listPets',
      keyId: 'acme',
    },
    ...{ plan: 'free', address: '10.0.0.1', totalMs: 12.3, window: 'minute', limit: 60, remaining: 0 },
  };
  it.each([
    [
      'banned',
      { status: 429, error: 'key_banned', fault: 'client', decision: 'banned', source: 'shared' },
      'answered 429 (key_banned) by the gateway after 12 ms. The key was banned, because it had kept sending after it was refused; the client must act.',
    ],
    [
      'beyond the concurrency limit',
      { status: 429, error: 'too_many_concurrent', fault: 'client', decision: 'crowded', source: 'shared' },
      "The key's requests in progress had reached its `concurrent` limit;",
    ],
    [
      'decided alone',
      { status: 429, error: 'rate_limited', fault: 'client', decision: 'refused', source: 'local' },
      'The key had used all 60 requests of that minute, by the counts of this process alone, because Redis was unavailable;',
    ],
    [
      'refused at its cost',
      { status: 429, error: 'rate_limited', decision: 'refused', source: 'shared', units: 5, remaining: 3 },
      'It costs 5 units, and the key had 3 of the 60 units of that minute left.',
    ],
    [
      'refused by a limit of a group',
      {
        status: 429,
        error: 'rate_limited',
        decision: 'refused',
        source: 'shared',
        window: 'reports-minute',
        limit: 5,
      },
      'The key had used all 5 requests of that minute for the group reports.',
    ],
    [
      'admitted in a limit of a group at its cost',
      { status: 200, decision: 'admitted', source: 'shared', window: 'reports-day', units: 5, remaining: 3 },
      'It was admitted at 5 units, and left 3 of the 60 units of that day for the group reports.',
    ],
    [
      'admitted at its cost',
      { status: 200, decision: 'admitted', source: 'shared', units: 5, remaining: 3 },
      'It was admitted at 5 units, and left 3 of the 60 units of that minute.',
    ],
    [
      'admitted, and refused by the trial',
      { status: 200, decision: 'admitted', source: 'shared', remaining: 3, trial: 'minute' },
      'It was admitted, and left 3 of the 60 requests of that minute; the trial of the plan would have refused the request, by its minute limit.',
    ],
    [
      'refused, and refused by a ban of the trial',
      { status: 429, error: 'rate_limited', decision: 'refused', source: 'shared', trial: 'banned' },
      'The key had used all 60 requests of that minute; the trial of the plan would have refused the request too, by a ban.',
    ],
    [
      'undecided',
      { status: 503, error: 'store_unavailable', fault: 'gateway', decision: 'unavailable', source: 'local' },
      "Redis was away, and redis.onFailure is refuse; the fault is the gateway's.",
    ],
    [
      'failed upstream',
      {
        status: 502,
        error: 'upstream_failed',
        fault: 'upstream',
        cause: 'connect ECONNREFUSED 10.0.0.7:3000',
        target: '10.0.0.7:3000',
        attempts: 3,
        upstreamMs: 9.5,
        decision: 'admitted',
        source: 'shared',
      },
      "answered 502 (upstream_failed) by the gateway after 12 ms, of which 9.5 ms passed at the upstream (sent to 10.0.0.7:3000, at attempt 3). It was admitted, and left 0 of the 60 requests of that minute; the fault is the upstream's: connect ECONNREFUSED 10.0.0.7:3000.",
    ],
    [
      'gone',
      { status: 499, fault: 'client', decision: 'admitted', source: 'shared' },
      'ended before its response was complete, because the client went away first, after 12 ms.',
    ],
    [
      'cut off by the upstream',
      {
        status: 200,
        error: 'upstream_failed',
        fault: 'upstream',
        cause: 'the target closed the connection before its response was complete',
        target: '10.0.0.7:3000',
        attempts: 1,
        upstreamMs: 9.5,
        decision: 'admitted',
      },
      'was answered 200 by 10.0.0.7:3000, and that was cut off (upstream_failed) after 12 ms, of which 9.5 ms passed at the upstream.',
    ],
    [
      'a WebSocket',
      { status: 101, target: '10.0.0.7:3000', attempts: 1, upstreamMs: 1, decision: 'admitted' },
      'became a WebSocket to 10.0.0.7:3000 after 12 ms.',
    ],
    [
      'an address whose secrets could not be looked up',
      {
        status: 503,
        error: 'store_unavailable',
        fault: 'gateway',
        decision: 'refused',
        window: 'address',
        limit: 30,
        source: 'local',
        keyId: undefined,
        plan: undefined,
        keyStatus: 'unread',
        secret: '9f86d081',
      },
      'Its secret, with a SHA-256 that begins with 9f86d081, could not be looked up in Redis, and all 30 requests from one address without a valid key in that minute were used, by the counts of this process alone, because Redis was unavailable; the fault is the gateway',
    ],
    [
      'an address without a key',
      {
        status: 429,
        error: 'rate_limited',
        fault: 'client',
        decision: 'refused',
        window: 'address',
        limit: 30,
        keyId: undefined,
        plan: undefined,
      },
      'All 30 requests from one address without a valid key in that minute were used; the client must act.',
    ],
    ...(
      [
        ['disabled', 'wayne', 'with the secret 021dbb6d… of the key wayne, which is disabled, on '],
        ['expired', 'hooli', 'with the expired secret 021dbb6d… of the key hooli, on '],
        ['leaked', 'hooli', 'with the leaked secret 021dbb6d… of the key hooli, on '],
        ['unknown', undefined, 'with the secret 021dbb6d…, which belongs to no key, on '],
      ] as const
    ).map(([keyStatus, keyId, text]): [string, object, string] => [
      `that the limit of its address refused, with a secret that is ${keyStatus}`,
      {
        ...{ status: 429, error: 'rate_limited', decision: 'refused', window: 'address', limit: 30 },
        ...{ remaining: 0, keyStatus, keyId, plan: undefined, secret: '021dbb6d' },
      },
      text,
    ]),
    [
      'with a leaked secret',
      { status: 401, error: 'invalid_key', keyStatus: 'leaked', keyId: 'hooli', secret: '021dbb6d' },
      'Its secret 021dbb6d of the key hooli had ended, because it was reported as leaked.',
    ],
    [
      'of a banned key',
      { status: 429, decision: 'banned', bannedUntil: '2026-11-22T10:40:00.000Z', window: 'minute' },
      'The key was banned until 2026-11-22 10:40:00 UTC, because it had kept sending after it was refused.',
    ],
    [
      'of a key that an operator banned',
      {
        ...{ status: 429, decision: 'banned', window: 'minute' },
        ...{ bannedUntil: '2026-11-22T10:40:00.000Z', byHand: true },
      },
      'The key was banned by an operator until 2026-11-22 10:40:00 UTC.',
    ],
    [
      'malformed',
      {
        status: 400,
        error: 'invalid_request',
        fault: 'client',
        method: undefined,
        path: undefined,
        operation: undefined,
        keyId: undefined,
        plan: undefined,
        decision: 'counted',
        window: 'address',
      },
      'A request that could not be read from 10.0.0.1, on 2026-11-22 at 10:31:07.123 UTC, was answered 400 (invalid_request) by the gateway after 12 ms. The request is malformed; the client must act.',
    ],
    [
      'a preflight',
      { status: 204, decision: 'counted', window: 'preflight', keyId: undefined, plan: undefined },
      'was answered 204 by the gateway itself after 12 ms.',
    ],
  ])('that is %s states this', (_, members, text) => {
    expect(requestStory({ ...common, ...members }, [])).toContain(text);
  });

  it('with control characters sends none to the terminal', async () => {
    const id = randomUUID();
    const line = { ...common, requestId: id, status: 200, path: '/\u001b[2J\u009b', cause: '\u202e\u0007' };
    const { pathOf } = configFolder({ 'a.log': `${JSON.stringify(line)}\n` });
    for (const more of [[], ['--json']]) {
      const { stdout } = await runTollgate(['why', id, '--log', pathOf('a.log'), ...more]);
      expect(stdout).not.toMatch(/[^\P{C}\n]/u);
      if (more.length > 0) expect(JSON.parse(stdout)).toEqual(line);
    }
  });
});
