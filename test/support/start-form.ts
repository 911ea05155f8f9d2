import { afterAll, beforeAll } from 'vitest';
import type { RedisPlace } from './connect-redis.ts';
import { redisUrl } from './redis.ts';
import { type RedisForm, redisForms } from './redis-forms.ts';

/** All forms of Redis on which a suite runs. `one server` means the Redis server that all test files of this run share. */
export const allRedisForms: readonly RedisForm[] = [
  {
    name: 'one server',
    start: () => Promise.resolve({ place: { url: redisUrl() }, stop: () => Promise.resolve() }),
  },
  ...redisForms,
];

/**
 * Suites run on one server in `npm test`, and on Cluster and Sentinel in `npm run test:rest`.
 *
 * @param everyday further forms on which the suite runs in `npm test`
 */
export function tagsOf({ name }: { readonly name: string }, everyday: readonly string[] = []): string[] {
  return ['one server', ...everyday].includes(name) ? [] : ['full'];
}

/** Starts this form of Redis for all tests of the calling file. @returns a function that returns its address */
export function startForm(form: RedisForm): () => RedisPlace {
  let started: Awaited<ReturnType<RedisForm['start']>> | undefined;
  beforeAll(async () => {
    started = await form.start();
  });
  afterAll(() => started?.stop());
  return () => {
    if (started === undefined) throw new Error('the server is started before the first test');
    return started.place;
  };
}
