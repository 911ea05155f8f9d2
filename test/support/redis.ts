import { randomUUID } from 'node:crypto';
import { inject } from 'vitest';

/** The Redis of this test run (see `redis-global-setup.ts`). It is shared: use a prefix of your own. */
export function redisUrl(): string {
  return inject('redisUrl');
}

/** A key prefix that no other test uses. */
export function freshPrefix(): string {
  return `test-${randomUUID()}`;
}
