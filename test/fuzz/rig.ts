import { readFile } from 'node:fs/promises';
import { type GatewayProcess, startGateway, testConfig } from '../support/gateway-process.ts';
import { converse } from './converse.ts';
import { keyEntries, secrets } from './fuzz-keys.ts';
import { judge, type Memory, type Verdict } from './judge.ts';
import { startStrictBackend } from './strict-backend.ts';

/** The limit is small, so that short inputs exceed it. */
const bodyBytesMax = 2_048;

/** A gateway process with a strict backend. The rig judges one connection at a time. */
export interface Rig {
  readonly gateway: GatewayProcess;
  try(pieces: readonly string[]): Promise<Verdict>;
  /** Stops the gateway and the backend. @returns the faults of the gateway as a whole: a crash, errors in its log, excessive memory */
  stop(): Promise<readonly string[]>;
}

export async function startRig(): Promise<Rig> {
  const backend = await startStrictBackend();
  const gateway = await startGateway(
    testConfig({
      upstream: { url: backend.url, health: '/healthz' },
      keys: keyEntries,
      bodyBytesMax,
      addressBucket: { perMinute: 1_000_000_000 },
    }),
  );
  const memory: Memory = { requestIds: new Set(), requests: new Map() };
  let conversations = 0;
  return {
    gateway,
    async try(pieces) {
      const address = loopbackAddress(++conversations);
      const conversation = await converse({ port: gateway.port, address, pieces });
      memory.requests.delete(loopbackAddress(conversations - rememberedMax));
      return judge({ conversation, sight: backend.take(), memory });
    },
    async stop() {
      const faults = await judgeMemory(gateway);
      const exitCode = await gateway.stop();
      await backend.close();
      if (exitCode !== 0) faults.push(`the gateway process ended with ${exitCode ?? 'a signal'}`);
      return [...faults, ...judgeLog(gateway)];
    },
  };
}

/** The number of recent conversations whose requests the judge remembers. */
const rememberedMax = 10_000;

/** All addresses of 127.0.0.0/8 belong to this machine. */
function loopbackAddress(n: number): string {
  return `127.${1 + ((n >> 16) & 127)}.${(n >> 8) & 255}.${n & 255}`;
}

/** The gateway remembers 100,000 addresses, which take 70 MiB; V8 lets garbage grow to seven times this size. */
const residentKilobytesMax = 768 * 1024;

async function judgeMemory({ child }: GatewayProcess): Promise<string[]> {
  if (child.exitCode !== null || child.signalCode !== null) return ['the gateway process died'];
  const status = await readFile(`/proc/${child.pid}/status`, 'utf8');
  const residentKilobytes = Number(/^VmRSS:\s*(\d+) kB$/m.exec(status)?.[1]);
  return residentKilobytes < residentKilobytesMax ? [] : [`the gateway holds ${residentKilobytes} kB`];
}

/** The number of the level `error` in pino. */
const errorLevel = 50;

function judgeLog({ lines }: GatewayProcess): string[] {
  const faults: string[] = [];
  for (const line of lines) {
    const text = JSON.stringify(line);
    if (Number(line.level) >= errorLevel) faults.push(`the log says ${text}`);
    if (Object.values(secrets).some((secret) => text.includes(secret))) {
      faults.push(`the log has a secret: ${text}`);
    }
  }
  return faults;
}
