import dns from 'node:dns/promises';
import { readFileSync } from 'node:fs';
import { syncBuiltinESMExports } from 'node:module';
import { parseArgs } from 'node:util';
import { runGateway } from '../../gateway/main.ts';
import { tunedBounds } from './tuned-bounds.ts';
import type { Tuning } from './tuning.ts';

/** Runs the gateway as a process with the tuning of a test. */
async function runTunedGateway(configFile: string, tuning: Tuning): Promise<void> {
  const { clockSkewMs = 0, windowsMs, hostsFile } = tuning;
  if (hostsFile !== undefined) resolveFrom(hostsFile);
  await runGateway({
    configFile,
    bounds: tunedBounds(tuning.bounds ?? {}),
    nowMs: () => Date.now() + clockSkewMs,
    ...(windowsMs && { windowsMs }),
  });
}

/** Makes every host name resolve to the addresses in this file, one a line. */
function resolveFrom(hostsFile: string): void {
  const lookup = async () =>
    readFileSync(hostsFile, 'utf8')
      .split('\n')
      .filter((line) => line !== '')
      .map((address) => ({ address, family: 4 }));
  Object.assign(dns, { lookup });
  syncBuiltinESMExports();
}

const { values } = parseArgs({ options: { config: { type: 'string' } } });
await runTunedGateway(values.config ?? '', JSON.parse(process.env.TEST_TUNING ?? '{}'));
