import dns from 'node:dns/promises';
import { readFileSync } from 'node:fs';
import { flushCompileCache, syncBuiltinESMExports } from 'node:module';
import { parseArgs } from 'node:util';
import { runGateway } from '../../gateway/main.ts';
import { tunedBounds } from './tuned-bounds.ts';
import type { Tuning } from './tuning.ts';

/** Runs the gateway with the values that a test sets in `tuning`. */
async function runTunedGateway(configFile: string, tuning: Tuning): Promise<void> {
  const { clockSkewMs = 0, clockLeapMs = 0, windowsMs, hostsFile } = tuning;
  let aheadMs = clockSkewMs;
  process.on('SIGUSR2', () => {
    aheadMs += clockLeapMs;
  });
  if (hostsFile !== undefined) resolveFrom(hostsFile);
  await runGateway({
    configFile,
    bounds: tunedBounds({ ...tuning.bounds, windowsMs }),
    nowMs: () => Date.now() + aheadMs,
  });
  // Node writes the compile cache when a process exits. Most tests kill their gateways, so the cache is written now.
  flushCompileCache();
}

/** Resolves host names with `hostsFile`. Each look-up reads the file again. */
function resolveFrom(hostsFile: string): void {
  const lookup = async (hostname: string) => {
    const found = readFileSync(hostsFile, 'utf8')
      .split('\n')
      .map((line) => line.split(/\s+/))
      .filter(([address, ...names]) => address !== '' && (names.length === 0 || names.includes(hostname)))
      .map(([address]) => ({ address, family: 4 }));
    if (found.length === 0) throw new Error(`getaddrinfo ENOTFOUND ${hostname}`);
    return found;
  };
  Object.assign(dns, { lookup });
  syncBuiltinESMExports();
}

const { values } = parseArgs({ options: { config: { type: 'string' } } });
await runTunedGateway(values.config ?? '', JSON.parse(process.env.TEST_TUNING ?? '{}'));
