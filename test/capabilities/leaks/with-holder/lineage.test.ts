import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { withSecrets } from '../../../../gateway/keys/directory/change-secrets.ts';
import { digestSecret, digestStart, issueSecret } from '../../../../gateway/shared/secrets.ts';
import { askAdmin, makeToken } from '../../../support/admin-client.ts';
import type { RedisPlace } from '../../../support/connect-redis.ts';
import { type DirectoryOfTest, directoryOf } from '../../../support/directory-of.ts';
import { fetchOnce } from '../../../support/fetch-once.ts';
import { type Fleet, startFleetHere } from '../../../support/fleet.ts';
import type { RunningGateway } from '../../../support/gateway-process.ts';
import { entryFor, labelOf, makeReporter, sendReport } from '../../../support/leak-report.ts';
import { redisForms } from '../../../support/redis-forms.ts';
import { runTollgate } from '../../../support/run-tollgate.ts';
import { tagsOf } from '../../../support/start-form.ts';
import { patientGateway } from '../../../support/tuning.ts';

/** A holder, who may be a thief, rotates a leaked secret before the report. Two processes share one Redis. */

const reporter = makeReporter();
const writer = makeToken('write', 'ops');
let fleet: Fleet<RunningGateway>;
let directory: DirectoryOfTest;

const servers = [
  { name: 'one server', tags: [], start: () => Promise.resolve({ place: undefined, stop: async () => {} }) },
  ...redisForms.map((form) => ({ name: form.name, tags: tagsOf(form), start: form.start })),
];

for (const { name, tags, start } of servers)
  describe(`with Redis on ${name}`, { tags }, () => {
    let server: { readonly place: RedisPlace | undefined; stop(): Promise<void> };

    beforeAll(async () => {
      server = await start();
      const { place } = server;
      fleet = await startFleetHere({
        starts: [{ tuning: { bounds: patientGateway } }, { tuning: { bounds: patientGateway } }],
        config: {
          keys: { directory: true },
          admin: { host: '127.0.0.1', port: 0, tokens: [writer.entry] },
          limitsPath: '/limits',
          selfService: { rotate: true },
          leaksPath: '/leaks',
          leaks: { github: { keysFile: './github-keys.json' } },
        },
        files: { 'github-keys.json': reporter.publicKeys },
        ...(place && { place }),
      });
      directory = await directoryOf({ ...(place ?? { url: fleet.redis.url }), prefix: fleet.prefix });
    });

    afterAll(async () => {
      directory?.close();
      await fleet?.stop();
      await server?.stop();
    });

    it('a report ends the secrets that were issued with the leaked one on every process, and says so everywhere', async () => {
      const [first, other] = [issueSecret(), issueSecret()];
      await directory.issue('acme', [first, other]);
      const { secret: second } = await rotate(first, 0);
      const { secret: third } = await rotate(second, 1);
      for (const secret of [second, third]) expect(await statusesOf(secret)).toEqual([200, 200]);

      const json = [{ token: first, url: 'https://example.com/paste' }];
      const answers = [];
      for (let reports = 0; reports < 2; reports++) {
        answers.push((await ask('/leaks', { method: 'POST', json })).body);
        for (const secret of [first, second, third]) expect(await statusesOf(secret)).toEqual([401, 401]);
      }
      const judged = {
        ...labelOf(first, 'true_positive', ''),
        key: 'acme',
        ended: true,
        descendants: [startOf(second), startOf(third)],
      };
      expect(answers).toEqual([[judged], [judged]]);
      expect(await statusesOf(other)).toEqual([200, 200]);

      const { changes } = (await ask('/changes?limit=50')).body;
      const recorded = changes.filter((one: { key?: string; action: string }) => one.action === 'leak');
      expect(recorded).toMatchObject([
        { key: 'acme', before: { secret: startOf(first) }, after: { descendants: judged.descendants } },
      ]);
      const texts = (await ask('/events')).body.events.map(({ text }: { text: string }) => text);
      expect(texts).toContain(
        'ops reported a leaked secret of acme, which has ended, as have 2 secrets that its holder issued from it.',
      );
      const shown = (await ask('/keys/acme')).body.secrets.find(
        (one: { digestStart: string }) => one.digestStart === startOf(third),
      );
      const leak = { by: 'ops', ended: true, ancestor: startOf(first), url: 'https://example.com/paste' };
      expect(shown).toMatchObject({ isExpired: true, issuedFrom: startOf(second), leak });
      const { adminUrl } = fleet.gateways[0] ?? { adminUrl: '' };
      const env = { TOLLGATE_ADMIN_TOKEN: writer.token };
      const { stdout } = await runTollgate(['keys', 'leaked', '--admin', adminUrl], env, `${first}\n`);
      expect(stdout).toContain(`has ended, with those that its holder issued from it: ${startOf(second)}…`);
    });

    it('a report of a secret that its key no longer has ends the descendants, and no secret before it', async () => {
      const first = issueSecret();
      await directory.issue('long-line', [first]);
      const { secret: second } = await rotate(first);
      const { secret: third } = await rotate(second);
      const { secret: fourth } = await rotate(third);
      await removeSecrets('long-line', [second, third]);
      expect(await statusesOf(second)).toEqual([401, 401]);
      const whoami = await ask('/whoami', { method: 'POST', json: { sha256: digestSecret(second) } });
      expect(whoami.body).toMatchObject({ known: true, id: 'long-line', isExpired: true });
      expect(whoami.body).not.toHaveProperty('expiresAt');
      const { body } = await sendReport(fleet.origins[1] ?? '', reporter, [entryFor(second)]);
      expect(body).toEqual([labelOf(second, 'true_positive')]);
      expect(await statusesOf(fourth)).toEqual([401, 401]);
      expect(await statusesOf(first)).toEqual([200, 200]);
      const again = await sendReport(fleet.origins[0] ?? '', reporter, [entryFor(second)]);
      expect(again.body).toEqual(body);
      await removeSecrets('long-line', [fourth]);
      const found = await directory.read('long-line');
      expect(found).not.toHaveProperty('key.pastSecrets');
    });

    it('a secret that an operator issues is a root, so a report of an older secret does not end it', async () => {
      const first = issueSecret();
      await directory.issue('operated', [first]);
      const { secret: second } = await rotate(first);
      const issued = await ask('/keys/operated/secrets', { method: 'POST', json: { overlap: '1h' } });
      await ask('/leaks', { method: 'POST', json: [{ token: first }] });
      expect(await statusesOf(second)).toEqual([401, 401]);
      expect(await statusesOf(issued.body.secret)).toEqual([200, 200]);
    });

    it('a secret that an operator removed keeps its descendants until its leak is reported', async () => {
      const first = issueSecret();
      await directory.issue('removed', [first]);
      const { secret: second } = await rotate(first);
      const removed = await ask(`/keys/removed/secrets/${startOf(first)}`, { method: 'DELETE' });
      expect(removed.body.secrets).toHaveLength(1);
      expect(await statusesOf(first)).toEqual([401, 401]);
      await ask('/keys/removed', { method: 'PATCH', json: { name: 'A name' } });
      expect(await statusesOf(second)).toEqual([200, 200]);
      await ask('/leaks', { method: 'POST', json: [{ token: first }] });
      expect(await statusesOf(second)).toEqual([401, 401]);
    });

    it('a rotation at the same time as a report on another process leaves no valid secret', async () => {
      for (let round = 0; round < 25; round++) {
        const first = issueSecret();
        await directory.issue(`at-once-${round}`, [first]);
        const report = async () => {
          await new Promise((resolve) => setTimeout(resolve, round % 5));
          return sendReport(fleet.origins[1] ?? '', reporter, [entryFor(first)]);
        };
        const [rotated, reported] = await Promise.all([rotate(first), report()]);
        expect(reported.body).toEqual([labelOf(first, 'true_positive')]);
        expect(await statusesOf(first)).toEqual([401, 401]);
        if (rotated.status === 200) expect(await statusesOf(rotated.secret)).toEqual([401, 401]);
      }
    });

    it('an export carries the descent, so a report after an import ends the descendants', async () => {
      const first = issueSecret();
      await directory.issue('moving', [first]);
      const { secret: second } = await rotate(first);
      const { secret: third } = await rotate(second);
      await removeSecrets('moving', [first]);
      const exported = (await ask('/directory')).body.keys.filter(
        ({ id }: { id: string }) => id === 'moving',
      );
      expect(exported).toMatchObject([
        {
          secrets: [{ issuedFrom: digestSecret(first) }, { issuedFrom: digestSecret(second) }],
          pastSecrets: [{ sha256: digestSecret(first) }],
        },
      ]);
      await directory.discard('moving');
      expect((await ask('/directory', { method: 'POST', json: { keys: exported } })).body.created).toBe(1);
      const again = await ask('/directory', { method: 'POST', json: { keys: exported } });
      expect(again.body).toEqual({ created: 0, unchanged: 1, refused: [] });
      expect(await statusesOf(third)).toEqual([200, 200]);
      await ask('/leaks', { method: 'POST', json: [{ token: first }] });
      expect(await statusesOf(third)).toEqual([401, 401]);
    });
  });

async function rotate(secret: string, process = 0): Promise<{ status: number; secret: string }> {
  const headers = { authorization: `Bearer ${secret}` };
  const reply = await fetch(`${fleet.origins[process]}/limits/rotate`, { method: 'POST', headers });
  return { status: reply.status, ...((await reply.json()) as { secret: string }) };
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

const startOf = (secret: string) => digestStart(digestSecret(secret));

/** Removes expired secrets from a key, as a later rotation does when the key has no room. */
async function removeSecrets(id: string, removed: readonly string[]): Promise<void> {
  const found = await directory.read(id);
  if (found.kind !== 'found') throw new Error(`${id} was not found`);
  const digests = removed.map(digestSecret);
  const kept = found.key.secrets.filter(({ digest }) => !digests.includes(digest));
  const reply = await directory.replace(withSecrets(found.key, kept), found.key);
  expect(reply.kind).toBe('written');
}
