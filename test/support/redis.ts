import { randomUUID } from 'node:crypto';
import { inject } from 'vitest';

/** The Redis of this test run (see `redis-global-setup.ts`). All test files share this Redis, so use your own prefix. */
export function redisUrl(): string {
  return inject('redisUrl');
}

/** A key prefix that no other test uses. */
export function freshPrefix(): string {
  return `test-${randomUUID()}`;
}
