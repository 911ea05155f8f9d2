import { Redis } from 'ioredis';

/** A connection to a Redis under test that reconnects after a test stopped or froze it. */
export function inspect(url: string): Redis {
  const client = new Redis(url, { maxRetriesPerRequest: null, retryStrategy: () => 50 });
  client.on('error', () => {});
  return client;
}
