import dns from 'node:dns/promises';
import { readFileSync } from 'node:fs';
import { syncBuiltinESMExports } from 'node:module';
import { parseArgs } from 'node:util';
import { loadSettings } from '../../gateway/config/load-settings.ts';
import { formatProblems } from '../../gateway/config/problems/format-problems.ts';
import { watchSettings } from '../../gateway/config/watch-settings.ts';
import { createGateway } from '../../gateway/gateway.ts';
import { runGateway } from '../../gateway/main.ts';
import { createLog } from '../../gateway/observe/create-log.ts';
import { bounds } from '../../gateway/timeouts-and-sizes.ts';
import type { Tuning } from './tuning.ts';

/**
 * The gateway as a process of its own with the tuning of a test: `gateway/main.ts` itself with other bounds, or, where a
 * clock or windows are tuned, put together as it is there.
 */
async function runTunedGateway(configFile: string, tuning: Tuning): Promise<void> {
  const { clockSkewMs = 0, windowLengths, hostsFile } = tuning;
  Object.assign(bounds, tuning.bounds);
  if (hostsFile !== undefined) resolveFrom(hostsFile);
  if (clockSkewMs === 0 && windowLengths === undefined) return runGateway({ configFile });

  const loaded = await loadSettings({ file: configFile, env: process.env });
  if (loaded.kind === 'invalid') throw new Error(formatProblems(loaded.problems));
  const log = createLog({ pretty: false });
  const { logger } = log;
  const gateway = createGateway({
    settings: loaded.settings,
    log,
    nowMs: () => Date.now() + clockSkewMs,
    ...(windowLengths && { windowLengths }),
  });
  logger.info(await gateway.start(), 'the gateway listens');

  const watch = watchSettings({
    file: configFile,
    env: process.env,
    initial: loaded,
    onValid: ({ settings }) => {
      gateway.reload(settings);
      logger.info({ config: settings.version }, 'the configuration was reloaded');
    },
    onInvalid: ({ problems }) => gateway.reportFailedReload(formatProblems(problems)),
  });
  process.once('SIGTERM', async () => {
    watch.stop();
    await gateway.drain({ graceMs: bounds.drainGraceMs });
    await log.close();
    process.exit(0);
  });
}

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
