import type { RedisConnection } from './redis-connection.ts';

/** Resolves when every server is connected for the first time, or after a while: what is asked earlier fails at once. */
export function untilConnected(redis: RedisConnection, timeoutMs: number): Promise<void> {
  return new Promise((resolve) => {
    const stop = redis.on('ready', look);
    const timer = setTimeout(end, timeoutMs).unref();
    look();

    function look(): void {
      if (redis.nodes().every(({ client }) => client?.status === 'ready')) end();
    }

    function end(): void {
      clearTimeout(timer);
      stop();
      resolve();
    }
  });
}
