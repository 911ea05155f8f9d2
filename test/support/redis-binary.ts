import { requireProgram } from './require-program.ts';

/** The path of a Redis server, from the `PATH`. If Redis is missing, root on Debian or Ubuntu installs the distribution's package. */
export function redisBinary(): Promise<string> {
  return requireProgram({
    names: ['redis-server', 'valkey-server'],
    packageName: 'redis-server',
    advice:
      'The tests need a real Redis and found none: set TEST_REDIS_URL, or start Docker with the image ' +
      'redis:7.4-bookworm, or put redis-server or valkey-server on the PATH.',
  });
}
