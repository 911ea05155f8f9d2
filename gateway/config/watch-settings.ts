import { bounds } from '../bounds.ts';
import { createDigestFiles } from './digest-files.ts';
import type { InvalidSettings, Loaded, LoadOptions, ValidSettings } from './load-settings.ts';
import { wholeFile } from './problem.ts';
import type { Digests } from './read-config-file.ts';
import { createSettingsLoader } from './settings-loader.ts';

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
 * replace the file, Kubernetes' symlink swaps, bind mounts.
 *
 * New content is loaded as soon as it is seen, and accepted once two looks in a row found exactly what the load has
 * read: a file that is still being written may be valid YAML that lacks its last keys. The looks go on during a load,
 * so what happens to the files after those two does not matter: edits faster than loads delay none of them for ever.
 */
export function watchSettings(options: WatchOptions): SettingsWatch {
  const { file, env, initial, onValid, onInvalid, intervalMs = bounds.configPollIntervalMs } = options;
  const digestFiles = createDigestFiles();
  const loader = createSettingsLoader();
  let accepted = initial;
  /** Loaded and not accepted yet. */
  let candidate: Loaded | undefined;
  let isLoading = false;
  /** When a load that failed is tried again. */
  let retryAtMs = Number.POSITIVE_INFINITY;
  let lastSeen = '';
  /** What two looks in a row found, since the load began that may have read it. */
  let seenTwice = new Set<string>();
  let isStopped = false;
  let timer = setTimeout(look, intervalMs);

  async function look(): Promise<void> {
    const digests = await digestFiles((candidate ?? accepted).digests.keys(), Date.now());
    if (isStopped) return;
    const seen = contentOf(digests);
    if (seen === lastSeen) seenTwice.add(seen);
    lastSeen = seen;
    acceptCandidate();
    const isNews = seen !== contentOf((candidate ?? accepted).digests);
    if (!isLoading && (isNews || performance.now() >= retryAtMs)) void load(digests);
    // The next look is only planned now, so that no two overlap.
    timer = setTimeout(look, intervalMs);
  }

  async function load(digests: Digests): Promise<void> {
    isLoading = true;
    retryAtMs = Number.POSITIVE_INFINITY;
    seenTwice = new Set();
    try {
      candidate = await loader.load({ file, env });
    } catch (error) {
      // The thread died, of memory for example; the gateway goes on with what it has, and tries again.
      const message = `the configuration cannot be loaded: ${error instanceof Error ? error.message : error}`;
      candidate = { kind: 'invalid', problems: [{ ...wholeFile(file), message }], digests, version: message };
      retryAtMs = performance.now() + bounds.configRetryPauseMs;
    }
    isLoading = false;
    if (!isStopped) acceptCandidate();
  }

  function acceptCandidate(): void {
    if (candidate === undefined || !seenTwice.has(contentOf(candidate.digests))) return;
    const before = accepted;
    accepted = candidate;
    candidate = undefined;
    if (accepted.version === before.version) return;
    if (accepted.kind === 'valid') onValid(accepted);
    else onInvalid(accepted);
  }

  return {
    stop() {
      isStopped = true;
      clearTimeout(timer);
      loader.close();
    },
  };
}

function contentOf(digests: Digests): string {
  return [...digests].map(([file, digest]) => `${file} ${digest}`).join('\n');
}
