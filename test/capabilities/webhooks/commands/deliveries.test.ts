import { afterAll, beforeAll, expect, it, onTestFinished } from 'vitest';
import { runTollgate } from '../../../support/run-tollgate.ts';
import { startDeliveries, startWithTokens } from '../start-deliveries.ts';

let started: Awaited<ReturnType<typeof startDeliveries>>;
beforeAll(async () => {
  started = await startDeliveries();
});
afterAll(() => started.close());

function tollgate(...args: readonly string[]) {
  const { port, writer } = started;
  return runTollgate(args, {
    TOLLGATE_ADMIN: `http://127.0.0.1:${port}`,
    TOLLGATE_ADMIN_TOKEN: writer.token,
  });
}

async function linesOf(...args: readonly string[]): Promise<readonly string[]> {
  const { exitCode, stdout, stderr } = await tollgate(...args);
  expect({ exitCode, stderr }).toEqual({ exitCode: 0, stderr: '' });
  expect(stdout).not.toContain('a-token-in-the-path');
  return stdout.trimEnd().split('\n');
}

const eventsOf = async (...args: readonly string[]) =>
  JSON.parse((await linesOf('deliveries', ...args, '--json')).join('\n')).events;

it('deliveries first prints how many deliveries wait or failed, and why', async () => {
  const [counts, problem, titles, ...rows] = await linesOf('deliveries');
  expect(counts).toBe('0 failed, 2 waiting, 4 delivered.');
  const origin = new URL(started.refusing.url).origin;
  expect(problem).toMatch(
    /^\S+: 2 waiting\. It last failed at \S+ UTC \(status 500\)\. The next attempt is at \S+ UTC\.$/,
  );
  expect(problem).toContain(`${origin}/***`);
  expect(titles).toMatch(/^ID +EVENT +SUBJECT +STATE +LAST ANSWER +EVENT AT +RECEIVER +NEXT +ATTEMPTS$/);
  expect(rows).toHaveLength(6);
  expect(rows[0]).toMatch(/^evt_\S{20} +config\.rejected +config +delivered +status 204 +(now|.* ago) +http/);
});

it('deliveries filters the list', async () => {
  const typesOf = async (...args: readonly string[]) =>
    (await eventsOf(...args)).map(({ type, subject }: Record<string, string>) => `${type} ${subject}`);
  expect(await typesOf('--waiting')).toEqual(['key.created key globex', 'key.created key acme']);
  expect(await typesOf('--failed')).toEqual([]);
  expect(await typesOf('--failed', '--waiting')).toHaveLength(2);
  expect(await typesOf('--type', 'key.revoked')).toEqual(['key.revoked key acme']);
  expect(await typesOf('--key', 'globex')).toEqual(['key.created key globex']);
  expect(await typesOf('--receiver', started.settings.notify[1]?.id ?? '')).toHaveLength(2);
  expect(await typesOf('--to', '2020-01-01')).toEqual([]);
  expect(await typesOf('--limit', '3')).toHaveLength(3);
  expect((await linesOf('deliveries', '--failed')).at(-1)).toBe('No delivery matches these filters.');
});

it('deliveries on a narrow terminal shows the state and the last answer', async () => {
  const { stdout } = await runTollgate(['deliveries', '--waiting'], {
    TOLLGATE_ADMIN: `http://127.0.0.1:${started.port}`,
    TOLLGATE_ADMIN_TOKEN: started.reader.token,
    COLUMNS: '80',
  });
  const lines = stdout.trimEnd().split('\n');
  expect(Math.max(...lines.map((line) => line.length))).toBeLessThanOrEqual(80);
  expect(stdout).toMatch(/^evt_\S{20} +key\.created +key acme +waiting +status 500/m);
});

it('deliveries show prints the sentence of the event, the answers, and the body', async () => {
  const [event] = await eventsOf('--key', 'acme', '--type', 'key.created');
  const lines = await linesOf('deliveries', 'show', event.id);
  expect(lines[0]).toContain(`${event.id}: key.created about key acme, `);
  expect(lines[1]).toMatch(/^alice (created|issued) /);
  expect(lines.join('\n')).toMatch(/^\S+\/\*\*\* +[0-9a-f]{12} +waiting +\d+ +status 500 /m);
  const body = JSON.parse(lines.slice(lines.indexOf('{')).join('\n'));
  expect(body).toMatchObject({ type: 'key.created', data: { key: 'acme' } });
  const shown = JSON.parse((await linesOf('deliveries', 'show', event.id, '--json')).join('\n'));
  expect(JSON.parse(shown.body)).toEqual(body);
});

it('deliveries send sends an event again, to all receivers or to one receiver', async () => {
  const [event] = await eventsOf('--key', 'acme', '--type', 'key.created');
  const { accepting, refusing, settings } = started;
  const timesAt = ({ received }: typeof accepting) => received.filter(({ id }) => id === event.id).length;
  refusing.status = 204;
  expect(await linesOf('deliveries', 'send', event.id, '--receiver', settings.notify[1]?.id ?? '')).toEqual([
    `The event is due now for 1 receiver. "tollgate deliveries show ${event.id}" shows the result.`,
  ]);
  await expect.poll(() => eventsOf('--waiting', '--key', 'acme'), { timeout: 120_000 }).toEqual([]);
  expect(timesAt(accepting)).toBe(1);
  expect(await linesOf('deliveries', 'send', event.id)).toEqual([
    expect.stringContaining('due now for 2 receivers'),
  ]);
  await expect.poll(() => timesAt(accepting), { timeout: 120_000 }).toBe(2);
});

it('an unknown event is a failure with advice', async () => {
  const advice = expect.stringContaining(
    'There is no event evt_none. "tollgate deliveries" lists the events',
  );
  expect(await tollgate('deliveries', 'show', 'evt_none')).toMatchObject({ exitCode: 1, stderr: advice });
  expect(await tollgate('deliveries', 'send', 'evt_none')).toMatchObject({ exitCode: 1, stderr: advice });
});

it('without receivers, deliveries prints how to add a receiver', async () => {
  const { gateway, port, reader } = await startWithTokens({});
  onTestFinished(() => gateway.drain({ graceMs: 0 }));
  const env = { TOLLGATE_ADMIN: `http://127.0.0.1:${port}`, TOLLGATE_ADMIN_TOKEN: reader.token };
  const { stdout } = await runTollgate(['deliveries'], env);
  expect(stdout).toMatch(/^No receiver is configured.*\nnotify:\n.* url: .*tollgate notify test URL/s);
});
