import type { Client } from 'undici';

/**
 * How a target is: `well` answers; `silent` does not answer in time, be it hanging, starved or only pausing; `gone`
 * refuses connections or says itself that it is not well.
 */
export type Health = 'well' | 'silent' | 'gone';

/** What one look at a target found. */
export interface Finding {
  readonly health: Health;
  /** Why it is not well. */
  readonly reason: string | undefined;
}

interface HealthCheck {
  /** A connection of its own: a target whose pool is full of slow requests can still say that it is well. */
  readonly client: Client;
  readonly path: string;
  readonly timeoutMs: number;
}

/** Asks a target's health path once; any 2xx in time is well. Never rejects. */
export async function checkHealth({ client, path, timeoutMs }: HealthCheck): Promise<Finding> {
  const signal = AbortSignal.timeout(timeoutMs);
  try {
    // undici heeds the signal only once it is connected; a connection that is still being made serves the next look.
    const answer = await Promise.race([client.request({ path, method: 'GET', signal }), rejectOn(signal)]);
    await answer.body.dump();
    if (answer.statusCode >= 200 && answer.statusCode < 300) {
      return { health: 'well', reason: undefined };
    }
    return { health: 'gone', reason: `health check answered ${answer.statusCode}` };
  } catch (error) {
    if (signal.aborted) {
      return { health: 'silent', reason: `health check was not answered within ${timeoutMs} ms` };
    }
    return { health: 'gone', reason: `health check failed: ${describe(error)}` };
  }
}

function rejectOn(signal: AbortSignal): Promise<never> {
  return new Promise((_, reject) => signal.addEventListener('abort', () => reject(signal.reason)));
}

function describe(error: unknown): string {
  return error instanceof Error ? error.message || error.name : String(error);
}
