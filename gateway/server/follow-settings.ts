import type { Logger } from 'pino';
import type { Loaded } from '../config/load-settings.ts';
import type { LoadedInThread, SettingsLoader } from '../config/loader/settings-loader.ts';
import { formatProblems } from '../config/problems/format-problems.ts';
import {
  type Rejected,
  restartNeeded,
  type SettingsWatch,
  settingsInForce,
  watchSettings,
} from '../config/watch-settings.ts';
import type { Bounds } from '../shared/timeouts-and-sizes.ts';
import { createEditedFiles } from './edited-files.ts';
import type { Gateway } from './gateway.ts';
import type { Supervisor } from './workers/supervisor.ts';

/** Applies valid edits of the configuration on disk. An invalid edit is logged and reported in `/readyz`. */
export function followSettings(
  gateway: Pick<Gateway, 'reportFailedReload'> & Pick<Supervisor, 'reload'>,
  {
    initial,
    logger,
    bounds,
    ...watched
  }: {
    readonly file: string;
    readonly env: NodeJS.ProcessEnv;
    readonly initial: Extract<Loaded | LoadedInThread, { kind: 'valid' }>;
    readonly loader?: SettingsLoader;
    readonly logger: Logger;
    readonly bounds: Bounds;
  },
): SettingsWatch {
  const { settings } = initial;
  const editedFiles = createEditedFiles(initial.digests);
  return watchSettings({
    ...watched,
    initial,
    bounds,
    onValid: ({ settings: next, warnings, digests }, message, rejected) => {
      for (const warning of warnings) logger.warn(warning);
      const waitsForRestart = restartNeeded(settings, next);
      for (const key of waitsForRestart) logger.warn(`a change of ${key} takes effect at the next start`);
      const notInForce = {
        ...(rejected && { lastError: formatProblems(rejected.problems), kept: keptContents(rejected) }),
        ...(waitsForRestart.length > 0 && { waitsForRestart }),
      };
      // A setting that needs a restart keeps its value until the restart, and the admin API shows this value.
      const files = editedFiles.ofLoaded(digests);
      gateway.reload(settingsInForce(settings, next), notInForce, files, message);
      logger.info({ config: next.version }, 'the configuration was reloaded');
    },
    onInvalid: (rejected) => {
      const { problems, version } = rejected;
      const text = formatProblems(problems);
      const kept = keptContents(rejected);
      gateway.reportFailedReload(text, version, kept, editedFiles.ofRejected(rejected));
      const files = kept.map(({ file }) => file).join(', ');
      const effect =
        kept.length === 0
          ? '; the last valid configuration stays in force'
          : ` as a whole: ${files} ${kept.length === 1 ? 'keeps its' : 'keep their'} last valid content`;
      logger.error({ problems, kept }, `the configuration was not reloaded${effect}\n${text}`);
    },
    onSlow: (slowFile) => {
      const seconds = bounds.configLoadSlowMs / 1_000;
      logger.warn(
        `the configuration has been loading for ${seconds} s and is still at ${slowFile}; until the end of the load, the last valid configuration applies`,
      );
    },
  });
}

/** The invalid files whose last valid content applies, for `/readyz` and the log. */
function keptContents({ kept }: Rejected) {
  return kept.map(({ file, problems: [problem], sinceMs, revokes }) => ({
    file,
    reason: problem ? `${problem.file}:${problem.line}:${problem.column}: ${problem.message}` : '',
    since: new Date(sinceMs).toISOString(),
    revokes,
  }));
}
