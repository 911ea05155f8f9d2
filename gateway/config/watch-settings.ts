import { bounds } from '../bounds.ts';
import { createFingerprintFiles } from './fingerprint-files.ts';
import type { InvalidSettings, Loaded, LoadOptions, ValidSettings } from './load-settings.ts';
import { loadSettingsInWorker } from './load-settings-in-worker.ts';
import { wholeFile } from './problem.ts';

export interface WatchOptions extends LoadOptions {
  /** What is in force: the result of the first load. */
  readonly initial: Loaded;
  /** Called once for each new valid content, also when it is what was in force before an invalid one. */
  readonly onValid: (loaded: ValidSettings) => void;
  /** Called once for each distinct invalid content; nothing has changed. */
  readonly onInvalid: (loaded: InvalidSettings) => void;
  readonly intervalMs?: number;
}

export interface SettingsWatch {
  /** Neither callback is called after this. */
  stop(): void;
}

/**
 * Looks at the content of every configuration file at an interval, which sees what file events miss: editors that
 * replace the file, Kubernetes' symlink swaps, bind mounts. New content is loaded when two looks in a row found it the
 * same: a file that is still being written may be valid YAML that lacks its last keys.
 */
export function watchSettings(options: WatchOptions): SettingsWatch {
  const { file, env, initial, onValid, onInvalid, intervalMs = bounds.configPollIntervalMs } = options;
  const fingerprintFiles = createFingerprintFiles();
  let { files, version } = initial;
  let loadedFingerprint: string | undefined;
  let lastFingerprint: string | undefined;
  let isStopped = false;
  let timer = setTimeout(look, intervalMs);

  async function look(): Promise<void> {
    const fingerprint = await fingerprintFiles(files, Date.now());
    const isStill = fingerprint === lastFingerprint;
    lastFingerprint = fingerprint;
    if (isStill && fingerprint !== loadedFingerprint && !isStopped) {
      const loaded = await load();
      // An edit that began during the load may have been read in part; the next looks see it whole.
      if ((await fingerprintFiles(files, Date.now())) === fingerprint) {
        loadedFingerprint = fingerprint;
        report(loaded);
      }
    }
    // The next look is only planned now, so that no two overlap; it comes sooner when it may confirm an edit.
    if (!isStopped) timer = setTimeout(look, isStill ? intervalMs : intervalMs / 2);
  }

  async function load(): Promise<Loaded> {
    try {
      return await loadSettingsInWorker({ file, env });
    } catch (error) {
      // The thread died, of memory for example; the files stay watched and the gateway goes on with what it has.
      const message = `the configuration cannot be loaded: ${error instanceof Error ? error.message : error}`;
      return { kind: 'invalid', problems: [{ ...wholeFile(file), message }], files, version: message };
    }
  }

  function report(loaded: Loaded): void {
    files = loaded.files;
    if (isStopped || loaded.version === version) return;
    version = loaded.version;
    if (loaded.kind === 'valid') onValid(loaded);
    else onInvalid(loaded);
  }

  return {
    stop() {
      isStopped = true;
      clearTimeout(timer);
    },
  };
}
