import type { Client } from 'undici';

interface HealthCheck {
  /** A connection of its own: a target whose pool is full of slow requests can still say that it is well. */
  readonly client: Client;
  readonly path: string;
  readonly timeoutMs: number;
}

export type Health = { readonly kind: 'healthy' } | { readonly kind: 'unhealthy'; readonly reason: string };

/** Asks a target's health path once; any 2xx in time is healthy. Never rejects. */
export async function checkHealth({ client, path, timeoutMs }: HealthCheck): Promise<Health> {
  try {
    const answer = await client.request({ path, method: 'GET', signal: AbortSignal.timeout(timeoutMs) });
    await answer.body.dump();
    if (answer.statusCode >= 200 && answer.statusCode < 300) return { kind: 'healthy' };
    return { kind: 'unhealthy', reason: `health check answered ${answer.statusCode}` };
  } catch (error) {
    return { kind: 'unhealthy', reason: `health check failed: ${describe(error)}` };
  }
}

function describe(error: unknown): string {
  return error instanceof Error ? error.message || error.name : String(error);
}
