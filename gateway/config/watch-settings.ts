import { isDeepStrictEqual } from 'node:util';
import type { Settings } from '../model.ts';
import type { Bounds } from '../timeouts-and-sizes.ts';
import type { InvalidSettings, Loaded, LoadOptions, ValidSettings } from './load-settings.ts';
import { wholeFile } from './problems/problem.ts';
import { createSettingsLoader, type LoaderBounds } from './settings-loader.ts';
import { createDigestFiles, type DigestBounds } from './source/digest-files.ts';
import type { Digests } from './source/read-config-file.ts';

export interface WatchOptions extends LoadOptions {
  /** What is in force: the result of the first load. */
  readonly initial: Loaded;
  /** Called once for each new valid content, also when it is what was in force before an invalid one. */
  readonly onValid: (loaded: ValidSettings) => void;
  /** Called once for each distinct invalid content; nothing has changed. */
  readonly onInvalid: (loaded: InvalidSettings) => void;
  /** Called once for each load that takes long, with the file that is being parsed. */
  readonly onSlow?: (file: string) => void;
  readonly bounds: WatchBounds;
}

export type WatchBounds = LoaderBounds &
  DigestBounds &
  Pick<Bounds, 'configPollIntervalMs' | 'configLoadSlowMs' | 'configRetryPauseMs' | 'configRetryPauseMaxMs'>;

export interface SettingsWatch {
  /** No callback is called after this. */
  stop(): void;
}

/** A load that has not answered yet. */
interface LoadUnderWay {
  readonly startedMs: number;
  /** The files that it has read, with the digests of what it read. */
  readonly read: Map<string, string>;
  readonly slowTimer: NodeJS.Timeout;
}

/**
 * Looks at the content of every configuration file at an interval, which sees what file events miss: editors that
 * replace the file, Kubernetes' symlink swaps, bind mounts.
 *
 * New content is loaded as soon as it is seen, and accepted once two looks in a row found exactly what the load has
 * read: a file that is still being written may be valid YAML that lacks its last keys. The looks go on during a load,
 * so what happens to the files after those two does not matter: edits faster than loads delay none of them for ever.
 *
 * A load that takes long is given up when what it has read has changed since: a text that takes minutes must not delay
 * its own repair. Each load after one that was given up has twice as long before it can be given up too. So where every
 * load takes long and edits do not end, some load is still finished.
 */
export function watchSettings(options: WatchOptions): SettingsWatch {
  const { file, env, initial, onValid, onInvalid, onSlow, bounds } = options;
  const { configPollIntervalMs: intervalMs, configLoadSlowMs: slowAfterMs } = bounds;
  const digestFiles = createDigestFiles(bounds);
  const loader = createSettingsLoader(bounds);
  let accepted = initial;
  /** Loaded and not accepted yet. */
  let candidate: Loaded | undefined;
  let underWay: LoadUnderWay | undefined;
  /** How long a load is let be though its files have changed. */
  let patienceMs = slowAfterMs;
  /** When a load that failed is tried again, and how long that was put off. */
  let retryAtMs = Number.POSITIVE_INFINITY;
  let retryPauseMs = 0;
  let lastSeen: Digests = new Map();
  /** What two looks in a row found, since the load began that may have read it. */
  let seenTwice: Digests[] = [];
  let isStopped = false;
  let timer = setTimeout(look, intervalMs);

  async function look(): Promise<void> {
    const before = underWay;
    // What the load reads from now on may be newer than what this look finds.
    const readBefore: Digests = new Map(before?.read);
    const files = new Set([...(candidate ?? accepted).digests.keys(), ...readBefore.keys()]);
    const seen = await digestFiles(files, Date.now());
    if (isStopped) return;
    if (isDeepStrictEqual(seen, lastSeen) && !isDeepStrictEqual(seen, seenTwice.at(-1))) seenTwice.push(seen);
    lastSeen = seen;
    acceptCandidate();

    const isOutdated = before !== undefined && before === underWay && differ(readBefore, seen);
    if (isOutdated && performance.now() - before.startedMs >= patienceMs) giveUp(before);
    const isNews = differ((candidate ?? accepted).digests, seen);
    if (isNews) retryPauseMs = 0;
    if (underWay === undefined && (isNews || performance.now() >= retryAtMs)) void load(seen);
    // The next look is only planned now, so that no two overlap.
    timer = setTimeout(look, intervalMs);
  }

  async function load(seen: Digests): Promise<void> {
    const read = new Map<string, string>();
    const slowTimer = setTimeout(() => onSlow?.([...read.keys()].at(-1) ?? file), slowAfterMs);
    const mine: LoadUnderWay = { startedMs: performance.now(), read, slowTimer };
    underWay = mine;
    retryAtMs = Number.POSITIVE_INFINITY;
    seenTwice = [];
    let loaded: Loaded;
    try {
      loaded = await loader.load({ file, env, onRead: (name, digest) => read.set(name, digest) });
      retryPauseMs = 0;
    } catch (error) {
      // The thread died, of memory for example; the gateway goes on with what it has, and tries again.
      const message = `the configuration cannot be loaded: ${error instanceof Error ? error.message : error}`;
      const digests = new Map([...seen, ...read]);
      loaded = { kind: 'invalid', problems: [{ ...wholeFile(file), message }], digests, version: message };
      retryPauseMs = Math.min(2 * retryPauseMs || bounds.configRetryPauseMs, bounds.configRetryPauseMaxMs);
      retryAtMs = performance.now() + retryPauseMs;
    }
    clearTimeout(slowTimer);
    if (isStopped || underWay !== mine) return;
    underWay = undefined;
    patienceMs = slowAfterMs;
    candidate = loaded;
    acceptCandidate();
  }

  function giveUp(load: LoadUnderWay): void {
    clearTimeout(load.slowTimer);
    // The load is never answered.
    loader.close();
    underWay = undefined;
    patienceMs *= 2;
  }

  function acceptCandidate(): void {
    if (candidate === undefined) return;
    const { digests } = candidate;
    if (!seenTwice.some((seen) => agree(digests, seen))) return;
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
      clearTimeout(underWay?.slowTimer);
      loader.close();
    },
  };
}

/** What a process takes in only when it starts: its sockets and its store. */
const fixedAtStart = ['listen', 'admin', 'redis'] as const satisfies readonly (keyof Settings)[];

/** The names of changed settings that take effect only at the next start. */
export function restartNeeded(before: Settings, after: Settings): string[] {
  return fixedAtStart.filter((name) => !isDeepStrictEqual(before[name], after[name]));
}

/** Whether every file of the one has the same content in the other. */
function agree(digests: Digests, seen: Digests): boolean {
  return [...digests].every(([file, digest]) => seen.get(file) === digest);
}

/** Whether a file that is in both has another content in each. */
function differ(digests: Digests, seen: Digests): boolean {
  return [...digests].some(([file, digest]) => seen.has(file) && seen.get(file) !== digest);
}
