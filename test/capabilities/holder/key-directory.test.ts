import { expect, it, onTestFinished } from 'vitest';
import { keyEndings } from '../../integration/key-endings.ts';
import { directoryOf } from '../../support/directory-of.ts';
import { startFleetHere } from '../../support/fleet.ts';
import { patientStore } from '../../support/tuning.ts';

const alwaysOld = { directoryCachedMs: 0, directoryAbsentMs: 0 };

/** Starts three gateways with the key `issued` in the directory. */
async function start(bounds: Record<string, number> = {}) {
  const fleet = await startFleetHere({
    starts: Array(3).fill({ tuning: { bounds: { ...patientStore, ...bounds } } }),
    config: { keys: { directory: true }, limitsPath: '/limits' },
  });
  onTestFinished(() => fleet.stop());
  const directory = await directoryOf({ url: fleet.redis.url, prefix: fleet.prefix });
  onTestFinished(() => directory.close());
  await directory.issue('issued', ['secret']);
  const read = async (process: number, path = '/limits', secret = 'secret') => {
    const headers = { authorization: `Bearer ${secret}` };
    const response = await fetch(`${fleet.origins[process]}${path}`, { headers });
    await response.arrayBuffer();
    return response;
  };
  return { directory, read };
}

it('a key of the directory that is revoked cannot read its limits, and a key that changed plan reads the new limits', async () => {
  const { directory, read } = await start();
  const limitOf = async () => (await read(0)).headers.get('x-ratelimit-limit');
  expect(await limitOf()).toBe('60');
  await directory.edit('issued', { plan: 'pro' });
  expect(await limitOf()).toBe('300');
  await directory.edit('issued', { disabled: true });
  expect((await read(0)).status).toBe(401);
});

it.each(keyEndings)(
  'a key of the directory that is %s gets 401 the next time it reads its limits',
  async (_, change) => {
    const { directory, read } = await start();
    const served = await Promise.all(
      [0, 1, 2].map(async (process) => (await read(process, '/v1/pets')).status),
    );
    expect(served).toEqual([200, 200, 200]);
    await change(directory, 'issued');
    expect((await read(0)).status).toBe(401);
  },
);

it.each([
  alwaysOld,
  { directoryCachedKeysMax: 0 },
  { directoryCachedKeysMax: 0, directoryPackedBytesMax: 0 },
])(
  'when the cached key is dropped before a read of the limits uses it (%o), only a valid key reads them',
  async (forgotten) => {
    const { directory, read } = await start(forgotten);
    await directory.issue('disabled', ['secret-of-disabled'], { disabled: true });
    const statuses = [];
    for (const secret of ['secret', 'secret-of-disabled', 'unknown'])
      statuses.push((await read(0, '/limits', secret)).status);
    expect(statuses).toEqual([200, 401, 401]);
  },
);
