import { connect } from 'node:net';
import { connect as connectTls } from 'node:tls';
import { startDeadline } from '../../../shared/structures/within-deadline.ts';
import type { ConnectionPool } from '../../transport/connection-pool.ts';
import type { ActiveConnection, ResponseHandler, TargetRequest } from '../../transport/target-request.ts';
import { connectionErrorText, type TargetTls } from '../../transport/target-tls.ts';

/**
 * `healthy`: the target answers its health path with 2xx. A target without a health path is healthy when it accepts a connection.
 * `silent`: the target does not answer in time. The process of a silent target may hang, be paused, or lack CPU.
 * `down`: the target refuses or breaks connections, or answers its health path with a status other than 2xx.
 */
export type Health = 'healthy' | 'silent' | 'down';

export interface Finding {
  readonly health: Health;
  /** Why the target is not healthy. */
  readonly reason: string | undefined;
  /** Whether the check could not connect, so that a request could not connect either. */
  readonly isUnreachable?: boolean;
}

interface HealthCheck {
  readonly pool: ConnectionPool;
  /** The value of the `Host` field. */
  readonly host: string;
  readonly path: string;
  readonly timeoutMs: number;
}

/** Requests a target's health path once. The target is healthy if it sends a complete 2xx in time. Never rejects. */
export function checkHealth({ pool, host, path, timeoutMs }: HealthCheck): Promise<Finding> {
  return new Promise((resolve) => {
    let connection: ActiveConnection | undefined;
    let status = 0;
    const request: TargetRequest = {
      holder: '',
      method: 'GET',
      path,
      fields: ['Host', host],
      body: undefined,
      chunked: false,
    };
    const cancelDeadline = startDeadline(timeoutMs, () => {
      end({ health: 'silent', reason: `no response to the health check within ${timeoutMs} ms` });
      // If the connection is not established yet, the pool continues to establish it for the next check.
      if (connection === undefined) pool.withdraw(request, handler);
      else connection.abort();
    });

    function end(finding: Finding): void {
      cancelDeadline();
      resolve(finding);
    }

    const handler: ResponseHandler = {
      onSend: (made) => (connection = made),
      onInterim() {},
      onHead: (head) => (status = head.status),
      onPiece: () => true,
      onEnd() {
        connection = undefined;
        const isOk = status >= 200 && status < 300;
        end(isOk ? healthy : { health: 'down', reason: `health check answered ${status}` });
      },
      onFailure(failure) {
        connection = undefined;
        const reason = `health check failed: ${failure.cause}`;
        end({ health: 'down', reason, isUnreachable: failure.kind === 'connect' });
      },
    };
    pool.send(request, handler);
  });
}

export const healthy: Finding = { health: 'healthy', reason: undefined };

/** Connects to a target once, including the TLS handshake if there is one, and closes the connection. Never rejects. */
export function checkConnection({
  host,
  port,
  tls,
  timeoutMs,
}: {
  readonly host: string;
  readonly port: number;
  /** The TLS options; undefined for an `http` upstream. */
  readonly tls: TargetTls | undefined;
  readonly timeoutMs: number;
}): Promise<Finding> {
  return new Promise((resolve) => {
    const socket = tls === undefined ? connect({ host, port }) : connectTls({ host, port, ...tls });
    const cancelDeadline = startDeadline(timeoutMs, () => {
      end({ health: 'silent', reason: `no connection within ${timeoutMs} ms` });
    });

    function end(finding: Finding): void {
      cancelDeadline();
      socket.destroy();
      resolve(finding);
    }

    socket.once(tls === undefined ? 'connect' : 'secureConnect', () => end(healthy));
    // An error has no effect after the result is known.
    socket.on('error', (error) => {
      const reason = `no connection: ${connectionErrorText(error)}`;
      end({ health: 'down', reason, isUnreachable: true });
    });
    socket.once('close', () => end({ health: 'down', reason: 'the connection was closed at once' }));
  });
}
