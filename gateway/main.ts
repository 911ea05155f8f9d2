import { realpathSync } from 'node:fs';
import { availableParallelism, constants } from 'node:os';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { setFlagsFromString } from 'node:v8';
import { createSettingsLoader, failedLoad } from './config/loader/settings-loader.ts';
import { formatProblems } from './config/problems/format-problems.ts';
import { listenProblem } from './config/problems/listen-problem.ts';
import { createLog } from './observe/create-log.ts';
import { followSettings } from './server/follow-settings.ts';
import type { GatewayOptions } from './server/gateway.ts';
import type { Supervisor } from './server/workers/supervisor.ts';
import { terminalOf } from './shared/terminal/terminal.ts';
import { defaultBounds } from './shared/timeouts-and-sizes.ts';

/**
 * Disables V8's pretenuring. With pretenuring, V8 allocates objects in the old generation when earlier objects from the same code often
 * survived. The young generation is small under the first load, so all requests in flight survive, and V8 never revises its decision.
 * Requests are then freed only by a full garbage collection. With 400 connections, pretenuring cost a fifth of the throughput.
 */
const youngRequests = '--no-allocation-site-pretenuring';

export interface RunOptions extends Pick<GatewayOptions, 'bounds' | 'nowMs'> {
  readonly configFile: string;
}

/**
 * Runs the gateway until a signal stops it. SIGTERM and SIGHUP drain after a grace period, in which load balancers can react. SIGINT (a
 * user at a terminal) drains without the grace period. A second SIGINT ends the process immediately. Before the gateway listens, every
 * signal ends the process immediately. An invalid configuration is printed with all its problems, and the process exits with 1.
 *
 * The function is long because it contains all steps of the start in order, and each step uses results of earlier steps.
 */
export async function runGateway({ configFile, ...options }: RunOptions): Promise<void> {
  const { bounds = defaultBounds } = options;
  const source = { file: configFile, env: process.env };
  // The signal listeners are set first. In a container this process has id 1, and the kernel drops signals without a listener.
  let obey: (signal: NodeJS.Signals) => void = (signal) => process.exit(128 + constants.signals[signal]);
  for (const signal of ['SIGTERM', 'SIGINT', 'SIGHUP'] as const) process.on(signal, () => obey(signal));
  setFlagsFromString(youngRequests);
  const loader = createSettingsLoader(bounds);
  // Most of the start is the loading of the configuration and the import of the gateway. The loading and the import run in parallel,
  // because the configuration is loaded in a thread.
  const [loaded, { createGateway }] = await Promise.all([
    loader.load(source).catch((error) => failedLoad(configFile, error)),
    import('./server/gateway.ts'),
  ]);
  // The first edit is rarely soon, and the thread takes memory.
  loader.close();
  if (loaded.kind === 'invalid') {
    process.stderr.write(`${formatProblems(loaded.problems)}\n`);
    process.exitCode = 1;
    return;
  }

  const { settings } = loaded;
  const workers = settings.workers === 'auto' ? availableParallelism() : settings.workers;
  const log = createLog({
    terminal: terminalOf(process.stdout, process.env),
    sharedBy: workers > 1 ? {} : undefined,
    bounds,
  });
  const { logger } = log;
  process.on('uncaughtException', (bug) => {
    logger.fatal({ err: bug }, 'a bug ends the process');
    void log.close().then(() => process.exit(1));
  });

  for (const warning of loaded.warnings) logger.warn(warning);

  const gateway: Omit<Supervisor, 'kill'> & Partial<Supervisor> =
    workers === 1
      ? createGateway({ settings, log, pid: process.pid, ...options })
      : (await import('./server/workers/supervisor.ts')).createSupervisor({
          settings,
          workers,
          execArgv: [...process.execArgv, youngRequests],
          log,
          ...options,
          bounds,
        });
  const { listen, admin } = await gateway.start().catch(async (error) => {
    gateway.kill?.();
    await log.close();
    // The message has the format of a configuration problem, because operators know this format.
    process.stderr.write(`${listenProblem(error, settings)}\n`);
    process.exit(1);
  });

  let endedMs: number | undefined;
  // The parent is checked before the gateway reports that it listens. Until this line, a signal ends the process immediately.
  obey = (signal) => {
    if (endedMs === undefined) {
      endedMs = performance.now();
      void end(signal);
    } else if (signal === 'SIGINT' && performance.now() - endedMs > bounds.signalEchoMs) {
      gateway.kill?.();
      process.exit(1);
    }
  };
  const end = async (signal: NodeJS.Signals) => {
    logger.info({ signal }, 'draining');
    watch.stop();
    await gateway.drain({ graceMs: signal === 'SIGINT' ? 0 : bounds.drainGraceMs });
    logger.info('stopped');
    await log.close();
    process.exit(0);
  };

  logger.info(
    {
      listen,
      admin,
      environment: settings.environment,
      config: settings.version,
      ...(workers > 1 && { workers }),
    },
    'the gateway listens',
  );

  const watch = followSettings(gateway, { ...source, initial: loaded, loader, logger, bounds });
  if (process.env.npm_command === 'exec') endWithParent();
}

const isEntryPoint =
  process.argv[1] !== undefined && realpathSync(process.argv[1]) === fileURLToPath(import.meta.url);
if (isEntryPoint) {
  const configFile = configFileArgument() ?? process.env.TOLLGATE_CONFIG;
  if (configFile !== undefined && configFile !== '') await runGateway({ configFile });
  else {
    process.stderr.write('Which configuration? Give --config FILE or set TOLLGATE_CONFIG.\n');
    process.exitCode = 1;
  }
}

/**
 * Ends the process, as a SIGTERM would, once its parent has exited. `npx` runs a command in a shell. A signal to `npx` ends `npx` and the
 * shell, but the shell does not forward the signal. Without this check the gateway would keep running and occupy its port.
 */
function endWithParent(): void {
  const parent = process.ppid;
  const timer = setInterval(() => {
    if (process.ppid === parent) return;
    clearInterval(timer);
    process.kill(process.pid, 'SIGTERM');
  }, defaultBounds.parentPollMs);
  timer.unref();
}

function configFileArgument(): string | undefined {
  try {
    return parseArgs({ options: { config: { type: 'string' } } }).values.config;
  } catch (error) {
    process.stderr.write(`${error instanceof Error ? error.message : error}\n`);
    return undefined;
  }
}
