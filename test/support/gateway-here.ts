import { rm } from 'node:fs/promises';
import { pino } from 'pino';
import { loadSettings } from '../../gateway/config/load-settings.ts';
import { formatProblems } from '../../gateway/config/problems/format-problems.ts';
import { logSerializers } from '../../gateway/observe/logged-error.ts';
import { followSettings } from '../../gateway/server/follow-settings.ts';
import { createGateway } from './create-gateway.ts';
import { createLineLog, type GatewayStart, type RunningGateway, writeConfig } from './gateway-process.ts';
import { sharedLoader } from './shared-loader.ts';
import { tunedBounds } from './tuned-bounds.ts';

/**
 * Starts a whole gateway in the process of the test, with real listeners and a configuration on disk that the gateway follows. A gateway in
 * the test's process takes a twentieth of the CPU time of a separate process. Tests of signals, workers, crashes and output need
 * `startGateway`.
 */
export async function startGatewayHere(
  config: Record<string, unknown>,
  { tuning = {}, ...start }: GatewayStart = {},
): Promise<RunningGateway> {
  const { configDir, configFile, edit } = await writeConfig(config, start);
  const { clockSkewMs = 0, clockLeapMs = 0, windowsMs } = tuning;
  let aheadMs = clockSkewMs;
  // By default, the gateway cuts open connections when it stops, as if the process were killed.
  const bounds = tunedBounds({ drainDeadlineMs: 0, usageCloseTimeoutMs: 0, ...tuning.bounds, windowsMs });
  const loaded = loadSettings({ file: configFile, env: process.env });
  if (loaded.kind === 'invalid') throw new Error(formatProblems(loaded.problems));
  const { lines, line, add, end } = createLineLog();
  const write = (text: string) => add(JSON.parse(text));
  const logger = pino(
    { base: null, timestamp: pino.stdTimeFunctions.isoTime, serializers: logSerializers },
    { write },
  );
  for (const warning of loaded.warnings) logger.warn(warning);
  const gateway = createGateway({
    settings: loaded.settings,
    log: { logger, access: write },
    bounds,
    nowMs: () => Date.now() + aheadMs,
    pid: process.pid,
  });
  const { listen, admin } = await gateway.start();
  const watch = followSettings(gateway, {
    file: configFile,
    env: process.env,
    initial: loaded,
    loader: sharedLoader,
    logger,
    bounds,
  });
  let stopped: Promise<void> | undefined;

  async function drain(graceMs: number): Promise<void> {
    watch.stop();
    await gateway.drain({ graceMs });
    end('');
    await rm(configDir, { recursive: true, force: true });
  }

  return {
    baseUrl: `http://127.0.0.1:${listen.port}/v1`,
    port: listen.port,
    adminUrl: `http://127.0.0.1:${admin.port}`,
    configDir,
    lines,
    output: () => lines.map((entry) => JSON.stringify(entry)).join('\n'),
    line,
    editConfig: edit,
    leapClock() {
      aheadMs += clockLeapMs;
    },
    async stop(signal = 'SIGTERM') {
      stopped ??= drain(signal === 'SIGTERM' ? bounds.drainGraceMs : 0);
      await stopped;
      return 0;
    },
  };
}
