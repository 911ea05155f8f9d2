import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { parse, stringify } from 'yaml';
import { issueSecret } from '../../../gateway/shared/secrets.ts';
import { askAdmin, makeToken } from '../../support/admin-client.ts';
import { faultsOf } from '../../support/described-replies.ts';
import { type DirectoryOfTest, directoryOf, secretOf } from '../../support/directory-of.ts';
import { fetchOnce } from '../../support/fetch-once.ts';
import { type Fleet, readiness, startFleetHere } from '../../support/fleet.ts';
import { makeKey, type RunningGateway } from '../../support/gateway-process.ts';
import { inventedSecret } from '../../support/invented-secret.ts';
import { entryFor, labelOf, makeReporter, sendReport } from '../../support/leak-report.ts';
import { monitorRedis } from '../../support/monitor-redis.ts';
import { runTollgate } from '../../support/run-tollgate.ts';
import { patientGateway } from '../../support/tuning.ts';
import { until } from '../../support/until.ts';

/** Reports of leaked secrets, on two processes that share one Redis. */

const reporter = makeReporter();
const writer = makeToken('write', 'ops');
const reader = makeToken('read', 'viewer');
const rotating = { id: 'rotating', old: issueSecret(), current: issueSecret() };
const expired = { id: 'expired', secret: issueSecret() };
const moved = { first: issueSecret(), second: issueSecret(), third: issueSecret(), root: issueSecret() };
const [replayed, unrecorded, atOnce, shown, byToken, ownForm] = [
  'replayed',
  'unrecorded',
  'at-once',
  'shown',
  'by-token',
  'own-form',
].map((id) => makeKey({ id, plan: 'pro' }, id === 'own-form' ? inventedSecret() : issueSecret())) as [
  Made,
  Made,
  Made,
  Made,
  Made,
  Made,
];
type Made = ReturnType<typeof makeKey>;
let fleet: Fleet<RunningGateway>;
let directory: DirectoryOfTest;

beforeAll(async () => {
  const entry = (id: string, secrets: readonly string[], more = {}) => {
    return { id, plan: 'pro', secrets: secrets.map((one) => ({ sha256: secretOf(one).digest, ...more })) };
  };
  fleet = await startFleetHere({
    starts: [{ tuning: { bounds: patientGateway } }, { tuning: { bounds: patientGateway } }],
    config: {
      keys: { file: './keys.yaml', directory: true },
      admin: { host: '127.0.0.1', port: 0, tokens: [writer.entry, reader.entry] },
      leaksPath: '/leaks',
      leaks: { github: { keysFile: './github-keys.json' } },
    },
    files: {
      'keys.yaml': [
        ...[replayed, unrecorded, atOnce, shown, byToken, ownForm].map((made) => made.entry),
        entry(rotating.id, [rotating.old, rotating.current]),
        entry(expired.id, [expired.secret], { expires: '2026-01-01' }),
        {
          id: 'moved',
          plan: 'pro',
          secrets: [
            { sha256: secretOf(moved.first).digest, expires: '1970-01-01' },
            { sha256: secretOf(moved.second).digest, issuedFrom: secretOf(moved.first).digest },
            { sha256: secretOf(moved.third).digest, issuedFrom: secretOf(moved.second).digest },
            { sha256: secretOf(moved.root).digest },
          ],
        },
      ],
      'github-keys.json': reporter.publicKeys,
    },
  });
  directory = await directoryOf({ url: fleet.redis.url, prefix: fleet.prefix });
});

afterAll(async () => {
  directory?.close();
  await fleet?.stop();
});

function report(process: number, ...[entries, headers]: [Parameters<typeof sendReport>[2], object?]) {
  return sendReport(fleet.origins[process] ?? '', reporter, entries, { ...headers });
}

async function statusesOf(secret: string): Promise<number[]> {
  const headers = { authorization: `Bearer ${secret}` };
  const replies = fleet.origins.map((origin) => fetchOnce(`${origin}/v1/pets`, headers));
  return (await Promise.all(replies)).map(({ status }) => status);
}

function ask(path: string, options: Parameters<typeof askAdmin>[2] = {}) {
  const { port } = new URL(fleet.gateways[1]?.adminUrl ?? '');
  return askAdmin(Number(port), `/api/v1${path}`, { token: writer.token, ...options });
}

/** The recorded leaks of a key, the newest first. */
async function leaksOf(id: string) {
  const { body } = await ask('/changes?limit=200');
  const changes: { key?: string; action: string; by: string; before: object; after: object }[] = body.changes;
  return changes.filter(({ key, action }) => key === id && action === 'leak');
}

describe('a report of GitHub', () => {
  it('ends a leaked secret of the keys file on every process at once, and no other secret of the key', async () => {
    expect(await statusesOf(rotating.old)).toEqual([200, 200]);
    const { status, body, text } = await report(0, [entryFor(rotating.old)]);
    expect({ status, body }).toEqual({ status: 200, body: [labelOf(rotating.old, 'true_positive')] });
    expect(text).not.toContain(rotating.old);
    expect(await statusesOf(rotating.old)).toEqual([401, 401]);
    expect(await statusesOf(rotating.current)).toEqual([200, 200]);
    const digestStart = secretOf(rotating.old).digest.slice(0, 8);
    expect((await ask('/dead-secrets')).body.secrets).toContainEqual(
      expect.objectContaining({ key: 'rotating', state: 'leaked', digestStart }),
    );
  });

  it('ends the secrets of the keys file that the holder issued with the leaked one, before the key moved to the file', async () => {
    const { first, second, third, root } = moved;
    const { body } = await ask('/leaks', { method: 'POST', json: [{ token: first }] });
    const descendants = [second, third].map((one) => secretOf(one).digest.slice(0, 8));
    expect(body).toEqual([
      { ...labelOf(first, 'true_positive', ''), key: 'moved', ended: true, descendants },
    ]);
    for (const secret of [first, second, third]) expect(await statusesOf(secret)).toEqual([401, 401]);
    expect(await statusesOf(root)).toEqual([200, 200]);
    expect(await leaksOf('moved')).toMatchObject([{ after: { descendants } }]);
  });

  it('ends a leaked secret of the directory on every process at once, and no other secret of the key', async () => {
    const [leaked, other] = [issueSecret(), issueSecret()];
    await directory.issue('issued', [leaked, other]);
    expect(await statusesOf(leaked)).toEqual([200, 200]);
    const { body } = await report(1, [entryFor(leaked)]);
    expect(body).toEqual([labelOf(leaked, 'true_positive')]);
    expect(await statusesOf(leaked)).toEqual([401, 401]);
    expect(await statusesOf(other)).toEqual([200, 200]);
    expect(await leaksOf('issued')).toMatchObject([
      { by: 'github', before: { secret: secretOf(leaked).digest.slice(0, 8) } },
    ]);
  });

  it('is answered with a label for each token in the order of the report, also for expired, repeated and unknown tokens', async () => {
    const [unknown, invented] = [issueSecret(), inventedSecret()];
    const tokens = [unknown, expired.secret, invented, expired.secret, ownForm.secret];
    const { body } = await report(
      0,
      tokens.map((token) => entryFor(token)),
    );
    expect(body).toEqual([
      labelOf(unknown, 'false_positive'),
      labelOf(expired.secret, 'true_positive'),
      labelOf(invented, 'false_positive'),
      labelOf(expired.secret, 'true_positive'),
      labelOf(ownForm.secret, 'true_positive'),
    ]);
    expect(await statusesOf(ownForm.secret)).toEqual([401, 401]);
    expect((await report(1, [])).body).toEqual([]);
  });

  it('changes nothing when it is repeated on any process, and gets the same answer', async () => {
    const first = await report(0, [entryFor(replayed.secret)]);
    for (const process of [0, 1, 1]) {
      const again = await report(process, [
        entryFor(replayed.secret, { url: 'https://example.com/elsewhere' }),
      ]);
      expect(again.text).toBe(first.text);
    }
    expect(await leaksOf('replayed')).toHaveLength(1);
  });

  it('makes one change when it arrives on two processes at the same time', async () => {
    const issued = issueSecret();
    await directory.issue('issued-at-once', [issued]);
    const entries = [entryFor(atOnce.secret), entryFor(issued)];
    const replies = await Promise.all([0, 1, 0, 1].map((process) => report(process, entries)));
    const labels = entries.map(({ token }) => labelOf(token, 'true_positive'));
    expect(replies.map(({ body }) => body)).toEqual(replies.map(() => labels));
    expect(await leaksOf('at-once')).toHaveLength(1);
    expect(await leaksOf('issued-at-once')).toHaveLength(1);
  });

  it('ends several secrets of one key, and the key has one recorded change for each', async () => {
    const leaked = Array.from({ length: 12 }, () => issueSecret());
    await directory.issue('many-secrets', [...leaked, rotating.old]);
    const { body } = await report(
      0,
      leaked.map((token) => entryFor(token)),
    );
    expect(body).toEqual(leaked.map((token) => labelOf(token, 'true_positive')));
    for (const secret of leaked) expect(await statusesOf(secret)).toEqual([401, 401]);
    expect(await leaksOf('many-secrets')).toHaveLength(leaked.length);
  });

  it('records where the secret was found, without the secret and without control characters', async () => {
    const url = `https://example.com/${shown.secret}/\u202e\u0007?key=${shown.secret}&old%3D${rotating.old}`;
    await report(0, [entryFor(shown.secret, { url, source: 'commit' })]);
    const [change] = await leaksOf('shown');
    expect(change).toMatchObject({ by: 'github', after: { ended: true, source: 'commit' } });
    const isShown = async () => (await ask('/keys/shown')).body.secrets[0].leak !== undefined;
    await until('the other process shows the leak', isShown);
    const key = await ask('/keys/shown');
    const cleaned = 'https://example.com/…/\\u{202e}\\u{7}?key=…&old%3D…';
    expect(key.body).toMatchObject({
      state: 'expired',
      secrets: [{ isExpired: true, leak: { by: 'github', ended: true, source: 'commit', url: cleaned } }],
    });
    expect(key.body.secrets[0]).not.toHaveProperty('lastUsedAt');
    expect(key.body.why.sentence).toContain('found where everyone can read it');
    const sha256 = secretOf(shown.secret).digest;
    const owner = await ask('/whoami', { method: 'POST', json: { sha256 } });
    expect(owner.body).toMatchObject({ id: 'shown', isExpired: true, leak: { ended: true, url: cleaned } });
    await until('the list of events has the leak', async () => {
      const { body } = await ask('/events?kind=change');
      return JSON.stringify(body).includes('github reported a leaked secret of shown, which has ended.');
    });
    const { adminUrl } = fleet.gateways[0] ?? { adminUrl: '' };
    const shownByCommand = await runTollgate(['keys', 'show', 'shown', '--admin', adminUrl], {
      TOLLGATE_ADMIN_TOKEN: reader.token,
    });
    expect(shownByCommand.stdout).toContain(`reported by github`);
    expect(shownByCommand.stdout).toContain(cleaned);
  });

  it('records a leak if the process that stored the leak died before it recorded the leak', async () => {
    const digest = secretOf(unrecorded.secret).digest;
    const leak = { atMs: Date.now(), by: 'github', ended: true };
    const value = `1 ${JSON.stringify({ keyId: 'unrecorded', leak })}`;
    await fleet.inspector.hset(`${fleet.prefix}:leaked-secrets`, digest, value);
    const issued = issueSecret();
    const secrets = [{ ...secretOf(issued), leak, expiresMs: leak.atMs }];
    await directory.issue('unrecorded-in-directory', [], { secrets });
    const entries = [entryFor(unrecorded.secret), entryFor(issued)];
    const repeated = [0, 0, 1, 1];
    for (const process of repeated) expect((await report(process, entries)).status).toBe(200);
    for (const id of ['unrecorded', 'unrecorded-in-directory']) {
      await until(`the leak of ${id} is recorded`, async () => (await leaksOf(id)).length > 0);
      expect(await leaksOf(id)).toHaveLength(1);
    }
  });

  it('with invented tokens causes no look-up in the directory', async () => {
    const names: string[] = [];
    const monitor = await monitorRedis(fleet.redis.port, ([command = '', name = '']) => {
      if (/^get$/i.test(command)) names.push(name);
    });
    const invented = Array.from({ length: 5_000 }, () => entryFor(inventedSecret()));
    const { body } = await report(0, [...invented, entryFor(issueSecret())]);
    expect(body).toHaveLength(5_001);
    const isLookUp = (name: string) => name.startsWith(`${fleet.prefix}:digest:`);
    await until('the monitor has listed the look-up', () => names.some(isLookUp));
    monitor.stop();
    expect(names.filter(isLookUp)).toHaveLength(1);
  });
});

describe('a report that GitHub has not sent', () => {
  const other = makeReporter();

  it.each([
    ['has no signature', { 'github-public-key-signature': '' }],
    ['is signed by another key', { 'github-public-key-signature': other.signature('[]') }],
    ['has a signature that is no signature', { 'github-public-key-signature': 'AAAAAAAAAAAAAAAAAAAA' }],
    ['has a huge signature', { 'github-public-key-signature': 'A'.repeat(20_000) }],
    ['names an unknown key', { 'github-public-key-identifier': 'nobody' }],
  ])('gets 401 and learns nothing if it %s', async (_, headers) => {
    const [known, unknown] = [rotating.current, issueSecret()];
    const replies = [];
    for (const token of [known, unknown]) replies.push(await report(0, [entryFor(token)], headers));
    const body = {
      code: 'invalid_signature',
      message: 'The signature of the report is missing or not valid.',
      status: 401,
    };
    expect(replies.map((reply) => reply.body)).toEqual([body, body]);
    expect(replies[0]?.headers['www-authenticate']).toBe('Signature realm="leaks"');
    expect(replies[0]?.headers['ratelimit-policy']).toContain('"leaks";q=600');
    expect(await statusesOf(known)).toEqual([200, 200]);
  });

  it('gets 405 for another method, with the limit of its own bucket', async () => {
    const reply = await fetchOnce(`${fleet.origins[0]}/leaks`);
    expect([reply.status, reply.headers.get('allow')]).toEqual([405, 'POST']);
    expect(reply.headers.get('cache-control')).toBe('no-store');
  });
});

describe('a signed report that cannot be read', () => {
  it.each([
    ['no JSON', '[{"token": "x"}'],
    ['no array', '{"token": "x"}'],
    ['text after the array', '[] []'],
    ['an entry without a token', '[{"type": "x"}]'],
    ['a token that is no text', '[{"token": 1}]'],
    ['an entry that is no object', '["x"]'],
    ['an empty element', '[,]'],
    ['deeply nested lists', `[${'['.repeat(100_000)}${']'.repeat(100_000)}]`],
    ['a token that is too long', `[{"token": "${'x'.repeat(40_000)}"}]`],
    ['an entry that is too long', `[{"token": "x", "url": "${'x'.repeat(3_000_000)}"}]`],
  ])('gets 400: %s', async (_, text) => {
    const { status, body } = await report(0, text);
    expect({ status, code: body.code }).toEqual({ status: 400, code: 'invalid_request' });
  });

  it('is read although its address has a megabyte, nested members and escapes', async () => {
    const token = issueSecret();
    await directory.issue('long-address', [token]);
    const entry = {
      ...entryFor(token, { url: `https://example.com/${'x'.repeat(1_000_000)}` }),
      more: [{ a: '\\"]},' }],
    };
    const { body } = await report(0, ` ${JSON.stringify([entry])}\n`);
    expect(body).toEqual([labelOf(token, 'true_positive')]);
    const { url } = (await ask('/keys/long-address')).body.secrets[0].leak;
    expect(url).toHaveLength(500);
  });
});

describe('a report to the admin API', () => {
  it('ends a secret by its text or its digest, and needs a token that may write', async () => {
    const issued = issueSecret();
    await directory.issue('by-digest', [issued]);
    const json = [
      { token: byToken.secret, url: 'https://example.com/paste', member: 'ignored' },
      { sha256: secretOf(issued).digest.toUpperCase(), type: 'key' },
      { token: 'nothing' },
    ];
    const refused = await ask('/leaks', { method: 'POST', token: reader.token, json });
    expect(refused.status).toBe(403);
    expect(await statusesOf(issued)).toEqual([200, 200]);
    const reply = await ask('/leaks', { method: 'POST', json });
    expect([faultsOf(reply, 'POST', '/leaks'), faultsOf(refused, 'POST', '/leaks')]).toEqual([[], []]);
    expect(faultsOf(await ask('/leaks'), 'GET', '/leaks')).toEqual([]);
    const { status, body } = reply;
    expect({ status, body }).toEqual({
      status: 200,
      body: [
        { ...labelOf(byToken.secret, 'true_positive', ''), key: 'by-token', ended: true },
        { ...labelOf(issued, 'true_positive', 'key'), key: 'by-digest', ended: true },
        labelOf('nothing', 'false_positive', ''),
      ],
    });
    expect(await statusesOf(byToken.secret)).toEqual([401, 401]);
    expect(await statusesOf(issued)).toEqual([401, 401]);
    expect(await leaksOf('by-token')).toMatchObject([{ by: 'ops' }]);
  });

  it.each([[{}], [[]], [[{ url: 'x' }]], [[{ token: 'x', sha256: 'a'.repeat(64) }]], [[{ sha256: 'x' }]]])(
    'gets 400 for %j',
    async (json) => {
      expect((await ask('/leaks', { method: 'POST', json })).status).toBe(400);
    },
  );

  it('can be sent with the command keys leaked, which prints the keys and no secret', async () => {
    const [issued, unknown, { current }] = [issueSecret(), issueSecret(), rotating];
    await directory.issue('by-command', [issued]);
    const { adminUrl } = fleet.gateways[0] ?? { adminUrl: '' };
    const args = ['keys', 'leaked', '--admin', adminUrl, '--url', 'https://example.com/paste'];
    const env = { TOLLGATE_ADMIN_TOKEN: writer.token };
    const { exitCode, stdout, stderr } = await runTollgate(args, env, `${issued}\n\n${unknown}\n`);
    expect({ exitCode, stderr }).toEqual({ exitCode: 0, stderr: '' });
    expect(stdout).toMatch(/^ *1 .* by-command +has ended$/m);
    expect(stdout).toMatch(/^ *3 .* – +no key has it$/m);
    expect(stdout).not.toContain(issued.slice(3, 11));
    expect(await statusesOf(issued)).toEqual([401, 401]);

    const given = await runTollgate([...args, current], env);
    expect(given.exitCode).toBe(1);
    expect(given.stderr).toContain('Do not give a secret as an argument');
    const none = await runTollgate(args, env, '\n');
    expect([none.exitCode, none.stderr]).toEqual([1, expect.stringContaining('Which secrets?')]);
    expect(await statusesOf(current)).toEqual([200, 200]);
  });
});

describe('a leaked secret that the keys file still has', () => {
  it('is named by /readyz, by the list of leaks and by check, until the file no longer has it', async () => {
    const [gateway] = fleet.gateways;
    if (gateway === undefined) throw new Error('there is no gateway');
    const { body, httpStatus } = await readiness(gateway);
    expect(httpStatus).toBe(200);
    const reason = body.reasons.find((one) => one.includes('leaked'));
    expect(reason).toMatch(/^the configuration still has \d+ leaked secrets$/);
    const { secrets } = (await ask('/leaks', { token: reader.token })).body;
    const listed = secrets.find(({ key }: { key: string }) => key === 'replayed');
    expect(listed).toMatchObject({ file: 'keys.yaml', line: 1, leak: { by: 'github', ended: true } });
    const configFile = `${gateway.configDir}/gateway.yaml`;
    const checked = await runTollgate(['check', '--config', configFile, '--admin', gateway.adminUrl], {
      TOLLGATE_ADMIN_TOKEN: reader.token,
    });
    expect(checked.exitCode).toBe(0);
    const withoutToken = await runTollgate(['check', '--config', configFile, '--admin', gateway.adminUrl]);
    expect(withoutToken.stderr).toMatch(/reports that its configuration still has \d+ leaked secrets/);
    expect(checked.stderr).toMatch(
      /keys\.yaml:1: the secret [0-9a-f]{8}… of the key replayed leaked, and it is refused/,
    );
  });

  it('stays refused when its key moves from the keys file to the directory', async () => {
    for (const { configDir } of fleet.gateways) {
      const file = join(configDir, 'keys.yaml');
      const keys: { id: string }[] = parse(await readFile(file, 'utf8'));
      await writeFile(file, stringify(keys.filter(({ id }) => id !== 'replayed')));
    }
    const [{ sha256 } = { sha256: '' }] = replayed.entry.secrets;
    const keys = [{ id: 'replayed', plan: 'pro', secrets: [{ sha256 }] }];
    await until('the key is imported', async () => {
      const { body } = await ask('/directory', { method: 'POST', json: { keys } });
      return body.created === 1;
    });
    await until('both gateways find the key in the directory', async () => {
      const sources = fleet.gateways.map(async ({ adminUrl }) => {
        const { port } = new URL(adminUrl);
        const { body } = await askAdmin(Number(port), '/api/v1/keys/replayed', { token: writer.token });
        return body.source;
      });
      return (await Promise.all(sources)).every((source) => source === 'directory');
    });
    expect(await statusesOf(replayed.secret)).toEqual([401, 401]);
    expect((await ask('/keys/replayed')).body.secrets[0]).toMatchObject({
      isExpired: true,
      leak: { ended: true },
    });
  });
});
