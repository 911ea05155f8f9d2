/**
 * The entry point of the store's process. Environment: `PORT` (default 3000), `HOST` (default 0.0.0.0), `STORE_SEED=demo` for a few
 * animals. SIGTERM and SIGINT stop the store with exit status 0. A failed start logs one line and exits with status 1.
 */

import { pino } from 'pino';
import pretty from 'pino-pretty';
import { createApp } from './app.ts';
import { bounds } from './bounds.ts';
import { demoPets } from './demo-pets.ts';
import { createPetStore } from './pets.ts';

// The log has the same format as the gateway's log, so that both can be read together.
const logger = pino(
  { base: null, timestamp: pino.stdTimeFunctions.isoTime },
  process.stdout.isTTY ? pretty({ sync: true, translateTime: 'SYS:HH:MM:ss.l' }) : pino.destination(1),
);

await main();

async function main(): Promise<void> {
  // An empty variable counts as absent, because Compose passes an unset variable as an empty variable.
  const port = Number(process.env.PORT || 3000);
  const host = process.env.HOST || '0.0.0.0';
  const seed = process.env.STORE_SEED || 'none';
  if (!Number.isInteger(port) || port < 0 || port > 65_535) {
    return exitWith(`PORT must be a whole number from 0 to 65535, not "${process.env.PORT}"`);
  }
  if (seed !== 'none' && seed !== 'demo') return exitWith(`STORE_SEED must be demo or absent, not "${seed}"`);

  const pets = createPetStore({ petsMax: bounds.petsMax });
  if (seed === 'demo') for (const pet of demoPets) pets.add(pet);
  const app = createApp({ pets, logger });

  // The first signal removes the listener, so a second signal ends the process immediately.
  let isStopping = false;
  for (const signal of ['SIGTERM', 'SIGINT'] as const) process.once(signal, () => void stop(signal));

  try {
    await app.listen({ port, host, listenTextResolver: (address) => `pet store listening at ${address}` });
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException;
    return exitWith(
      code === 'EADDRINUSE'
        ? `port ${port} is in use on ${host}: set PORT to another one`
        : `cannot listen on ${host}, port ${port}: ${message}`,
    );
  }

  async function stop(signal: string): Promise<void> {
    if (isStopping) return;
    isStopping = true;
    logger.info({ signal }, 'store stopping');
    // `close` alone would wait without a timeout for requests in flight and for connections that never complete a request.
    setTimeout(() => app.server.closeAllConnections(), bounds.closeDeadlineMs).unref();
    await app.close();
    logger.info('store stopped');
  }
}

function exitWith(problem: string): void {
  logger.fatal(problem);
  process.exitCode = 1;
}
