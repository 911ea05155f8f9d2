import type { ConnectionPool } from '../../transport/connection-pool.ts';
import type { ResponseHandler, TargetConnection, TargetRequest } from '../../transport/target-request.ts';

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
  readonly pool: ConnectionPool;
  /** Value of the Host field. */
  readonly host: string;
  readonly path: string;
  readonly timeoutMs: number;
}

/** Asks a target's health path once; any 2xx that is complete in time is well. Never rejects. */
export function checkHealth({ pool, host, path, timeoutMs }: HealthCheck): Promise<Finding> {
  return new Promise((resolve) => {
    let connection: TargetConnection | undefined;
    let status = 0;
    const request: TargetRequest = {
      holder: '',
      method: 'GET',
      path,
      fields: ['Host', host],
      body: undefined,
      chunked: false,
    };
    const timer = setTimeout(() => {
      end({ health: 'silent', reason: `health check was not answered within ${timeoutMs} ms` });
      // A connection that is still being made serves the next look.
      if (connection === undefined) pool.withdraw(request, handler);
      else connection.abort();
    }, timeoutMs);
    timer.unref();

    function end(finding: Finding): void {
      clearTimeout(timer);
      resolve(finding);
    }

    const handler: ResponseHandler = {
      onSend: (made) => (connection = made),
      onInterim() {},
      onHead: (head) => (status = head.status),
      onPiece: () => true,
      onEnd() {
        connection = undefined;
        const isWell = status >= 200 && status < 300;
        end(isWell ? well : { health: 'gone', reason: `health check answered ${status}` });
      },
      onFailure(failure) {
        connection = undefined;
        end({ health: 'gone', reason: `health check failed: ${failure.cause}` });
      },
    };
    pool.send(request, handler);
  });
}

const well: Finding = { health: 'well', reason: undefined };
