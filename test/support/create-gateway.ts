import { MessageChannel } from 'node:worker_threads';
import {
  createGateway as createWithThread,
  type Gateway,
  type GatewayOptions,
} from '../../gateway/server/gateway.ts';
import { answerReading } from '../../gateway/server/reading/answer-reading.ts';
import type { StartReadingWorker } from '../../gateway/server/reading/reading-thread.ts';
import { defaultBounds } from '../../gateway/shared/timeouts-and-sizes.ts';

/**
 * Creates a gateway whose reading thread is the thread of the test, because a new thread imports all modules again, which takes 0.35 s of
 * CPU time. A draining gateway closes idle connections immediately, because the test sends no more requests.
 */
export function createGateway({ bounds = defaultBounds, ...options }: GatewayOptions): Gateway {
  return createWithThread({
    ...options,
    bounds: { ...bounds, drainIdleGraceMs: 0 },
    startReadingWorker: readHere,
  });
}

/** Starts the reading worker in this thread. The worker exchanges the same messages as a real thread. */
const readHere: StartReadingWorker = (data) => {
  const { port1, port2 } = new MessageChannel();
  answerReading(port2, data);
  port2.unref();
  const worker = Object.assign(port1, { terminate: async () => port1.close() });
  return worker as unknown as ReturnType<StartReadingWorker>;
};
