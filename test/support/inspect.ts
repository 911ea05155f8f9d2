import { Redis } from 'ioredis';
import type { RedisTls } from './redis-tls.ts';

/** A connection to a Redis under test that reconnects after a test has stopped or frozen the server. */
export function inspect(url: string, tls?: RedisTls): Redis {
  const client = new Redis(url, {
    maxRetriesPerRequest: null,
    retryStrategy: () => 20,
    ...(tls && { tls: tls.client }),
  });
  client.on('error', () => {});
  return client;
}
