import { onTestFinished } from 'vitest';
import { ConnectionPool } from '../../../gateway/request/transport/connection-pool.ts';
import type {
  ActiveConnection,
  ResponseHandler,
  TargetRequest,
  TransportFailure,
} from '../../../gateway/request/transport/target-request.ts';
import { createTargetTls } from '../../../gateway/request/transport/target-tls.ts';
import { createEventLoopBatch } from '../../../gateway/shared/event-loop-batch.ts';
import { type Bounds, defaultBounds } from '../../../gateway/shared/timeouts-and-sizes.ts';
import { backendTls } from '../../support/backend-tls.ts';
import {
  type RecordingBackend,
  type RecordingBackendOptions,
  startRecordingBackend,
} from '../../support/recording-backend.ts';
import { patientForwarding } from '../../support/tuning.ts';

export const get: TargetRequest = {
  holder: 'acme',
  method: 'GET',
  path: '/',
  fields: ['Host', 'a'],
  body: undefined,
  chunked: false,
};

/** A request that was sent through the pool, with its response or failure. */
export class Sent implements ResponseHandler {
  readonly ended: Promise<void>;
  connection: ActiveConnection | undefined;
  readonly interims: number[] = [];
  status: number | undefined;
  body = '';
  failure: TransportFailure | undefined;
  ends = 0;
  wantsMore = true;
  private readonly end = Promise.withResolvers<void>();

  constructor() {
    this.ended = this.end.promise;
  }

  onSend(connection: ActiveConnection): void {
    this.connection = connection;
  }

  onInterim({ status }: { status: number }): void {
    this.interims.push(status);
  }

  onHead({ status }: { status: number }, wholeBody = ''): void {
    this.status = status;
    this.body += wholeBody;
  }

  onPiece(piece: Buffer): boolean {
    this.body += piece.toString('latin1');
    return this.wantsMore;
  }

  onEnd(): void {
    this.connection = undefined;
    this.ends++;
    this.end.resolve();
  }

  onFailure(failure: TransportFailure): void {
    this.connection = undefined;
    this.ends++;
    this.failure = failure;
    this.end.resolve();
  }
}

export function send(pool: ConnectionPool, request: Partial<TargetRequest> = {}): Sent {
  const sent = new Sent();
  pool.send({ ...get, ...request }, sent);
  return sent;
}

/** A pool of connections to a recording backend; both are closed after the test. */
export async function startPool(
  overrides: Partial<Bounds> = {},
  options: RecordingBackendOptions = {},
): Promise<{ backend: RecordingBackend; pool: ConnectionPool }> {
  const backend = await startRecordingBackend(options);
  const client = backendTls()?.client;
  const pool = new ConnectionPool({
    host: '127.0.0.1',
    port: backend.port,
    tls: client && createTargetTls({ name: client.serverName, ca: client.ca }),
    bounds: { ...defaultBounds, ...patientForwarding, sweepIntervalMs: 20, ...overrides },
    atTurnEnd: createEventLoopBatch(),
  });
  onTestFinished(async () => {
    await pool.destroy();
    await backend.close();
  });
  return { backend, pool };
}
