import { randomInt } from 'node:crypto';
import { once } from 'node:events';
import { createServer } from 'node:net';

/** Test files that run at the same time choose from different ranges, so that two files never choose the same free port. */
const portsCount = 2_000;
const firstPort = 10_000 + (Number(process.env.VITEST_POOL_ID ?? 0) % 8) * portsCount;
const given = new Set<number>();

/**
 * Returns a port without a listener, and a different port each time. The port is below the range of outgoing connections, because an
 * outgoing connection could occupy the port before the server does. A Cluster needs twelve ports at the same time.
 */
export async function freePort(): Promise<number> {
  for (let attempt = 0; attempt < 100; attempt++) {
    const port = firstPort + randomInt(portsCount);
    if (given.has(port)) continue;
    given.add(port);
    if (await isFree(port)) return port;
  }
  throw new Error('no port is free');
}

async function isFree(port: number): Promise<boolean> {
  const probe = createServer().listen(port, '127.0.0.1');
  try {
    await once(probe, 'listening');
  } catch {
    return false;
  }
  probe.close();
  await once(probe, 'close');
  return true;
}
