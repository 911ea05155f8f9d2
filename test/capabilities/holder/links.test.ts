import { setTimeout as sleep } from 'node:timers/promises';
import { expect, it, onTestFinished } from 'vitest';
import { issueToken } from '../../../gateway/capabilities/holder/links/link-token.ts';
import { digestSecret, digestStart } from '../../../gateway/shared/secrets.ts';
import { keyEndings } from '../../integration/key-endings.ts';
import { secretOf } from '../../support/directory-of.ts';
import { makeKey } from '../../support/gateway-process.ts';
import { startCluster } from '../../support/start-cluster.ts';
import { until } from '../../support/until.ts';
import { startLinked } from './start-linked.ts';

const minuteMs = 60_000;

it('a link reads the figures of its key on every process, and cannot rotate, call the API or spend the quota', async () => {
  const { link, open, ask } = await startLinked();
  await open('secret', '/v1/pets');
  const { token, url, digestStart: start, untilAt } = await link();
  expect(url).toBe(`http://127.0.0.1/limits#${token}`);
  expect(digestStart(digestSecret(token))).toBe(start);
  for (const process of [0, 1]) {
    const { status, headers, body } = await open(token, '/limits', { process });
    expect([status, headers.get('cache-control'), headers.get('vary')]).toEqual([
      200,
      'no-store',
      'Accept, Authorization',
    ]);
    expect(body).toMatchObject({ id: 'acme', plan: 'free', link: { by: 'alice', untilAt } });
    expect([body.secret, body.links, body.windows[0].used]).toEqual([undefined, undefined, 1]);
  }
  const usage = await open(token, '/limits/usage?step=hour');
  expect([usage.status, usage.body.step]).toEqual([200, 'hour']);
  expect((await open(token, '/limits/deprecated')).body).toEqual({ operations: [] });
  const rotated = await open(token, '/limits/rotate', { method: 'POST' });
  expect([rotated.status, rotated.body.code]).toEqual([403, 'operation_not_allowed']);
  expect(rotated.body.message).toBe('A link only reads. To get a new secret, send a secret of the key.');
  expect((await open(token, '/limits/rotate')).status).toBe(405);
  expect((await open(token, '/limits', { method: 'DELETE' })).status).toBe(405);
  expect((await open(token, '/v1/pets')).body).toEqual({
    code: 'invalid_key',
    message: 'The API key is not valid.',
    status: 401,
  });

  // The holder sees that the link is open, and a link is no use of the secret and no request of the key.
  const own = await open('secret');
  expect(own.body).toMatchObject({
    secret: { canRotate: true },
    links: [{ digestStart: start, by: 'alice', untilAt }],
  });
  expect(own.body.windows[0].used).toBe(1);
  const { body: shown } = await ask('GET', '/keys/acme');
  expect([shown.links.length, shown.secrets.length]).toEqual([1, 1]);
});

it.each(keyEndings)('a link of a key that was %s opens nothing of another owner', async (how, change) => {
  const { directory, link, open, ask } = await startLinked();
  const { token } = await link();
  expect((await open(token)).status).toBe(200);
  await change(directory, 'acme');
  // A rotation does not end the link.
  const isSameKey = how === 'given another secret in its place';
  for (const path of ['/limits', '/limits/usage', '/limits/deprecated'])
    expect((await open(token, path)).status).toBe(isSameKey ? 200 : 401);
  const listed = await ask('GET', '/keys/acme/links');
  expect([listed.status, listed.body.links?.length]).toEqual(
    how === 'removed' ? [404, undefined] : [200, how.includes('issued again') ? 0 : 1],
  );
});

it('a link does not open the page when no secret would, and opens it again later', async () => {
  const { fleet, directory, link, open } = await startLinked();
  const { token } = await link();
  const expectStatus = async (status: number) => expect((await open(token)).status).toBe(status);
  await directory.edit('acme', { secrets: [{ ...secretOf('secret'), expiresMs: Date.now() - 1 }] });
  await expectStatus(401);
  await directory.edit('acme', { secrets: [] });
  await expectStatus(401);
  const leak = { atMs: Date.now(), by: 'github', ended: true };
  await directory.edit('acme', { secrets: [{ ...secretOf('secret'), leak }] });
  await expectStatus(401);
  await directory.edit('acme', { secrets: [secretOf('secret')], plan: 'gone' });
  await expectStatus(401);
  await directory.edit('acme', { plan: 'pro', disabled: true });
  await expectStatus(401);
  await directory.edit('acme', { disabled: false, addresses: ['192.0.2.0/24'] });
  const refused = await open(token);
  expect([refused.status, refused.body.code]).toEqual([403, 'address_not_allowed']);
  await directory.edit('acme', { addresses: ['127.0.0.1'] });
  expect((await open(token)).body).toMatchObject({ plan: 'pro' });
  // Without the hash, for example after Redis has lost its data, the link is unknown.
  await fleet.inspector.del(`${fleet.prefix}:{acme}:links`);
  await expectStatus(401);
});

it('a link of a key in a file stays at a rotation, and ends when other secrets replace all of its secrets', async () => {
  const key = makeKey({ id: 'filed' });
  const next = makeKey({ id: 'filed' });
  const other = makeKey({ id: 'other' });
  const { fleet, link, open } = await startLinked({
    config: { keys: [key.entry, other.entry], selfService: undefined },
  });
  const { token } = await link('filed');
  const rotated = {
    ...key.entry,
    secrets: [{ ...key.entry.secrets[0], expires: '2020-01-01' }, ...next.entry.secrets],
  };
  const editKeys = async (keys: object[], status: number) => {
    await fleet.editConfig({ keys });
    await until(`the link gets ${status}`, async () => (await open(token)).status === status);
  };
  expect((await open(token)).status).toBe(200);
  await editKeys([{ ...key.entry, disabled: true }, other.entry], 401);
  await editKeys([rotated, other.entry], 200);
  await until('the old secret has ended', async () => (await open(key.secret)).status === 401);
  expect((await open(token)).status).toBe(200);
  await editKeys([next.entry, other.entry], 401);
});

it('a link ends at its time, and its hash in Redis with it', async () => {
  const { fleet, link, open } = await startLinked();
  const { token, untilAt } = await link('acme', '1s');
  const long = await link('acme', '1h');
  const name = `${fleet.prefix}:{acme}:links`;
  expect(await fleet.inspector.pexpiretime(name)).toBe(Date.parse(long.untilAt));
  await until('the link has ended', async () => (await open(token)).status === 401);
  expect(Date.now()).toBeGreaterThanOrEqual(Date.parse(untilAt) - 100);
  expect((await open(long.token)).status).toBe(200);
  // The next link takes the place of the one that ended.
  await link('acme', '1m');
  expect(await fleet.inspector.hlen(name)).toBe(2);
  expect(await fleet.inspector.pexpiretime(name)).toBe(Date.parse(long.untilAt));
});

it.each([-40, 40])(
  'a link does not end earlier or later when the clock of a process leaps by %d days',
  async (days) => {
    const { fleet, link, open } = await startLinked({ clockLeapMs: days * 86_400_000 });
    const [short, long] = [await link('acme', '1s'), await link('acme', '1d')];
    for (const gateway of fleet.gateways) gateway.leapClock();
    expect((await open(long.token)).status).toBe(200);
    await until('the link has ended', async () => (await open(short.token)).status === 401);
  },
);

it('a removed link gets 401 from the next request on, also while requests with it are under way', async () => {
  const { link, open, ask } = await startLinked({ bounds: { limitsReadsPerMinuteMax: 100_000 } });
  const { token, digestStart: start } = await link();
  const statuses: number[] = [];
  let isRemoved = false;
  const readers = [0, 1, 0, 1].map(async (process) => {
    for (let count = 0; count < 50; count++) {
      const begunAfter = isRemoved;
      const { status } = await open(token, '/limits', { process });
      statuses.push(status);
      if (begunAfter) expect(status).toBe(401);
    }
  });
  await sleep(20);
  const removed = await ask('DELETE', `/keys/acme/links/${start}`);
  isRemoved = true;
  expect([removed.status, removed.body]).toEqual([200, { id: 'acme', links: [], ended: [start] }]);
  await Promise.all(readers);
  expect(new Set(statuses)).toEqual(new Set([200, 401]));
  for (const process of [0, 1]) {
    const { status, body } = await open(token, '/limits', { process });
    expect([status, body]).toEqual([401, endedBody]);
  }
});

const endedBody = {
  code: 'invalid_key',
  message: 'This link has ended or is not complete: ask the API team for a new link.',
  status: 401,
};

it('no token opens another key, in whatever form it is sent', async () => {
  const { directory, link, open, fleet } = await startLinked();
  await directory.issue('globex', ['secret of globex']);
  const { token } = await link();
  const [drawn = '', id = ''] = token.split('.');
  const encoded = (text: string) => Buffer.from(text).toString('base64url');
  const last = drawn.at(-1) === 'a' ? 'b' : 'a';
  for (const forged of [
    `${drawn}.${encoded('globex')}`,
    drawn,
    `${drawn}.`,
    `${drawn.slice(0, -1)}${last}.${id}`,
    `${drawn.slice(0, 20)}.${id}`,
    token.toUpperCase(),
    `${token}=`,
    `${token} ${token}`,
    `${drawn}.${encoded('acme}:links{')}`,
    `${drawn}.${encoded('\0acme')}`,
    `${drawn}.${encoded('x'.repeat(100))}`,
    `${drawn}.${'x'.repeat(4_000)}`,
    issueToken('acme'),
    issueToken('globex'),
    issueToken('nobody'),
    'tgl_',
  ]) {
    const { status, body } = await open(forged);
    expect([forged, status, body]).toEqual([forged, 401, endedBody]);
  }
  expect((await open('x'.repeat(40_000))).status).toBe(431);
  expect((await open(`${drawn}.${'x'.repeat(40_000)}`)).status).toBe(431);
  // The body and the query name another key.
  const body = JSON.stringify({ id: 'globex', key: 'globex' });
  expect((await open(token, '/limits?id=globex')).body.id).toBe('acme');
  expect((await open(token, '/limits/rotate', { method: 'POST', body })).status).toBe(403);

  // Only the header field counts.
  for (const path of [`/limits?token=${token}`, `/limits?${token}`, `/limits/${token}`]) {
    const response = await fetch(`${fleet.origins[0]}${path}`, {
      headers: { 'x-api-key': token, cookie: token },
    });
    expect([401, 404]).toContain(response.status);
    expect(await response.text()).not.toContain(drawn);
  }
  const foreign = await open(token, '/limits', { headers: { origin: 'https://evil.example' } });
  expect(foreign.headers.get('access-control-allow-origin')).toBeNull();
  const page = await fetch(`${fleet.origins[0]}/limits`, { headers: { accept: 'text/html' } });
  expect(page.headers.get('referrer-policy')).toBe('no-referrer');
  expect(page.headers.get('content-security-policy')).toContain("connect-src 'self'");
});

it('guesses of links are charged to the address, and do not take the reads of holders', async () => {
  const { link, open } = await startLinked({ config: { addressBucket: { perMinute: 10 } } });
  const { token } = await link();
  const guesses = [];
  for (let count = 0; count < 12; count++) guesses.push((await open(issueToken('acme'))).status);
  expect(guesses).toEqual([...Array(10).fill(401), 429, 429]);
  expect((await open(token, '/v1/pets')).status).toBe(429);
  expect([(await open(token)).status, (await open('secret')).status]).toEqual([200, 200]);
});

it('a link that is read too often gets 429, and neither the holder nor another link does', async () => {
  const { link, open } = await startLinked({ bounds: { limitsReadsPerMinuteMax: 5 } });
  const [leaked, other] = [await link(), await link()];
  const flood = [];
  for (let count = 0; count < 7; count++)
    flood.push((await open(leaked.token, '/limits', { process: count % 2 })).status);
  expect(flood).toEqual([...Array(5).fill(200), 429, 429]);
  expect([(await open(other.token)).status, (await open('secret')).status]).toEqual([200, 200]);
});

it('while Redis is away, a link gets 503 and no operator makes one, and after a loss of data it is unknown', async () => {
  const key = makeKey({ id: 'filed' });
  const { fleet, link, open, ask } = await startLinked({ keys: [key.entry] });
  const [ofDirectory, ofFile] = [await link(), await link('filed')];
  await fleet.redis.kill();
  for (const { token } of [ofDirectory, ofFile]) {
    for (const path of ['/limits', '/limits/usage']) {
      const { status, headers, body } = await open(token, path);
      expect([status, body.code, headers.get('retry-after')]).toEqual([503, 'store_unavailable', '1']);
    }
  }
  for (const [method, path, json] of [
    ['POST', '/keys/filed/links', { for: '1h' }],
    ['GET', '/keys/filed/links'],
    ['DELETE', '/keys/filed/links'],
    ['DELETE', `/keys/filed/links/${ofFile.digestStart}`],
  ] as const)
    expect([method, path, (await ask(method, path, json)).status]).toEqual([method, path, 503]);
  await fleet.redis.restart();
  await until('Redis is back', async () => (await open(ofFile.token)).status === 401);
});

it('neither Redis nor the log has the token of a link, and each change of a link is on record', async () => {
  const { fleet, link, open, ask } = await startLinked();
  const { token, digestStart: start, untilAt } = await link();
  await open(token);
  await open(token, '/v1/pets');
  await open(`${token.slice(0, -1)}x`);
  await ask('DELETE', '/keys/acme/links');
  const { changes } = (await ask('GET', '/changes')).body;
  expect(changes.slice(0, 2)).toMatchObject([
    {
      action: 'unlink',
      by: 'alice',
      key: 'acme',
      before: { links: [start] },
      text: 'alice ended a link to the page of acme.',
    },
    { action: 'link', by: 'alice', key: 'acme', after: { link: start, untilAt } },
  ]);
  const [drawn = ''] = token.split('.');
  const stored = [];
  for (const name of await fleet.inspector.keys('*')) {
    const type = await fleet.inspector.type(name);
    if (type === 'hash') stored.push(await fleet.inspector.hgetall(name));
    else if (type === 'string') stored.push(await fleet.inspector.get(name));
    else if (type === 'stream') stored.push(await fleet.inspector.xrange(name, '-', '+'));
    stored.push(name);
  }
  const random = drawn.slice(4, 30);
  expect(JSON.stringify(stored)).not.toContain(random);
  const lines = fleet.gateways.flatMap((gateway) => gateway.lines);
  expect(JSON.stringify(lines)).not.toContain(random);
  expect(JSON.stringify(changes)).not.toContain(random);
  // The access line names the key and the first digits.
  expect(lines.filter(({ path }) => path === '/limits')[0]).toMatchObject({ keyId: 'acme', status: 200 });
  expect(JSON.stringify(lines.filter(({ path }) => path === '/limits')[0])).toContain(start);
});

it('a key has at most ten links, and a link lasts at most 30 days', async () => {
  const { link, ask, reader } = await startLinked();
  for (let count = 0; count < 9; count++) await link();
  // Of several requests at the same time, one gets the last place.
  const last = await Promise.all(
    [0, 1, 0, 1].map((gateway) => ask('POST', '/keys/acme/links', { for: '1h' }, undefined, gateway)),
  );
  expect(last.map(({ status }) => status).sort()).toEqual([201, 409, 409, 409]);
  const refused = await ask('POST', '/keys/acme/links', { for: '1h' });
  expect(refused.body.message).toBe('acme has 10 links: end one first, or wait until one ends.');
  const { body } = await ask('GET', '/keys/acme/links', undefined, reader);
  expect(body.links).toHaveLength(10);
  expect(Date.parse(body.links[0].untilAt)).toBeLessThan(Date.now() + 61 * minuteMs);
  expect((await ask('DELETE', '/keys/acme/links')).body.ended).toHaveLength(10);
  expect((await ask('DELETE', '/keys/acme/links')).body).toEqual({ id: 'acme', links: [], ended: [] });

  for (const [path, json, status, text] of [
    ['/keys/acme/links', { for: '31d' }, 400, 'The member `for` must be at most 30 days.'],
    ['/keys/acme/links', { for: '0d' }, 400, 'must be a duration of at least a second'],
    ['/keys/acme/links', { for: '-7d' }, 400, 'must be a duration'],
    ['/keys/acme/links', { for: '7d', key: 'globex' }, 400, 'key'],
    ['/keys/acme/links', {}, 400, 'is missing'],
    ['/keys/nobody/links', { for: '7d' }, 404, 'no key'],
    ['/keys/%7Bx%7D/links', { for: '7d' }, 404, 'no key'],
  ] as const) {
    const reply = await ask('POST', path, json);
    expect([reply.status, reply.body.message]).toEqual([status, expect.stringContaining(text)]);
  }
  expect((await ask('POST', '/keys/acme/links', { for: '7d' }, reader)).status).toBe(403);
  expect((await ask('DELETE', '/keys/acme/links', undefined, reader)).status).toBe(403);
  expect((await ask('DELETE', '/keys/acme/links/00000000')).status).toBe(404);
  expect((await ask('DELETE', '/keys/acme/links/0')).status).toBe(400);
});

it('a link needs a page, Redis and a usable key, and the refusal says so', async () => {
  const key = makeKey({ id: 'filed', disabled: true } as object);
  const { ask, fleet } = await startLinked({ keys: [key.entry] });
  const unusable = await ask('POST', '/keys/filed/links', { for: '7d' });
  expect([unusable.status, unusable.body.message]).toEqual([
    409,
    expect.stringMatching(/^filed is disabled, or/),
  ]);
  await fleet.editConfig({ limitsPath: undefined, selfService: undefined });
  await until('the page is off', async () => {
    const { status, body } = await ask('POST', '/keys/acme/links', { for: '7d' });
    return status === 409 && /`limitsPath`/.test(body.message);
  });
});

it('the links of keys in several slots of a Cluster are made, opened and ended', async () => {
  const cluster = await startCluster({ hasReplicas: false });
  onTestFinished(() => cluster.stop());
  const ids = ['a', 'b', 'c', 'd', 'e', 'f'];
  const { ask, link, open, directory } = await startLinked({ place: { cluster: cluster.urls } });
  for (const id of ids) {
    await directory.issue(id, [`secret of ${id}`]);
    const [first, second] = [await link(id), await link(id)];
    expect((await ask('DELETE', `/keys/${id}/links/${first.digestStart}`)).status).toBe(200);
    expect([(await open(first.token)).status, (await open(second.token)).body?.id]).toEqual([401, id]);
    expect((await ask('GET', `/keys/${id}/links`)).body.links).toHaveLength(1);
  }
});

it('a secret of a file that begins like a link, and keys with every kind of id, work as before', async () => {
  const odd = makeKey({ id: 'odd' }, `tgl_${'a'.repeat(46)}.b2Rk`);
  const named = makeKey({ id: 'ada.l+x:1@example.com-_' });
  const longest = makeKey({ id: 'x'.repeat(100) });
  const { link, open } = await startLinked({ keys: [odd.entry, named.entry, longest.entry] });
  expect((await open(odd.secret)).body).toMatchObject({ id: 'odd', secret: {} });
  for (const { entry } of [named, longest]) {
    const { token, url } = await link(entry.id);
    expect(url).toMatch(/^[\w:/.#-]+\w$/);
    expect((await open(token)).body.id).toBe(entry.id);
  }
});
