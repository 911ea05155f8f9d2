import { isDeepStrictEqual } from 'node:util';
import type { Settings, StatedListener, StatedSettings } from '../shared/model.ts';
import type { Bounds } from '../shared/timeouts-and-sizes.ts';
import type { KeptFile } from './last-valid/keep-valid-files.ts';
import type { Loaded, LoadOptions, ValidSettings } from './load-settings.ts';
import {
  createSettingsLoader,
  failedLoad,
  type LoadedInThread,
  type SettingsLoader,
  type ValidInThread,
} from './loader/settings-loader.ts';
import { fullMessage, type SettingsMessage } from './loader/settings-message.ts';
import type { Problem } from './problems/problem.ts';
import { createDigestFiles } from './source/digest-files.ts';
import { type Digests, UnsettledContent } from './source/read-config-file.ts';

export interface WatchOptions extends Pick<LoadOptions, 'file' | 'env'> {
  /** Loaded at the start. */
  readonly initial: Loaded | LoadedInThread;
  /** The loader of `initial`. A new loader reads all files in full at the first edit. */
  readonly loader?: SettingsLoader;
  /**
   * Called with new settings, and with the current settings when invalid content on disk is changed back. The message is the difference
   * from the previous call (at first from `initial`).
   *
   * For files with an error, the settings contain the last valid content. `onInvalid` is then called after `onValid`, unless it was already
   * called for the same contents.
   */
  readonly onValid: (
    loaded: Omit<ValidSettings, 'contents'>,
    message: SettingsMessage,
    rejected?: Rejected,
  ) => void;
  /** Called once for each new content that is rejected. */
  readonly onInvalid: (rejected: Rejected) => void;
  /** Called with the file that is being parsed, at most once per load, if the load takes long. */
  readonly onSlow?: (file: string) => void;
  readonly bounds: Bounds;
}

export interface SettingsWatch {
  /** Afterwards no callback is called. */
  stop(): void;
}

export interface Rejected {
  readonly problems: readonly Problem[];
  /** The version of the content on disk. */
  readonly version: string;
  /** The digests of the files that were read. */
  readonly digests: Digests;
  /**
   * The files whose last valid content is in use; empty if loading failed as a whole, because all files then have their last valid content.
   */
  readonly kept: readonly (KeptFile & { readonly sinceMs: number })[];
}

/** A long text may be half written. */
interface UnsettledLoad {
  readonly kind: 'unsettled';
  readonly digests: Digests;
}

interface LoadUnderWay {
  /** Digests of the files that have been read so far. */
  readonly read: Map<string, string>;
  /** Whether a long text is being parsed. */
  readonly isLong: boolean;
  /** When a comparison found that one of these files has changed. */
  outdatedMs: number | undefined;
  readonly slowTimer: NodeJS.Timeout;
}

/**
 * Compares the content of every configuration file at an interval. This detects changes that file events miss: editors that replace the
 * file, symlink swaps in Kubernetes, and bind mounts.
 *
 * New content is loaded as soon as it is found. It takes effect once two comparisons in a row have found exactly the loaded content,
 * because a half-written file may be valid YAML that lacks its last keys. Comparisons continue during a load, and loaded settings take
 * effect even if the file has been edited again since. Frequent edits therefore do not prevent a change.
 *
 * A long text that may be half written is not parsed (`UnsettledContent`), because that takes seconds and would delay the complete text. It
 * is loaded after two comparisons have found the same content.
 *
 * If a file changes during a load, the load is cancelled after some time, because a large outdated file could delay the corrected file by
 * minutes. If no long text is being parsed, this time is longer, so that the load can usually finish. A cancellation ends the loader's
 * thread, and the keys that it has read are lost. The next attempt gets twice as much time, so one attempt completes eventually, even if
 * edits continue.
 */
export function watchSettings(options: WatchOptions): SettingsWatch {
  const { file, env, initial, loader = createSettingsLoader(options.bounds), bounds } = options;
  const { onValid, onInvalid, onSlow } = options;
  const { configPollIntervalMs: intervalMs } = bounds;
  const digestFiles = createDigestFiles(bounds);
  let accepted = initial;
  /** The last valid load. */
  let inForce: ValidSettings | ValidInThread | undefined = initial.kind === 'valid' ? initial : undefined;
  let rejected: Rejected | undefined;
  /** Loaded, but not in effect yet. */
  let candidate: LoadedInThread | UnsettledLoad | undefined;
  let underWay: LoadUnderWay | undefined;
  /** Multiplies the time after which the load of changed files is cancelled. */
  let patience = 1;
  /** The next retry after the thread died, and the pause before it. */
  let retryAtMs = Number.POSITIVE_INFINITY;
  let retryPauseMs = 0;
  let lastSeen: Digests = new Map();
  /** Digests of pairs of successive comparisons that found the same content, since the last load began. */
  let seenTwice: Digests[] = [];
  let isStopped = false;
  let timer = setTimeout(compare, intervalMs);

  async function compare(): Promise<void> {
    const before = underWay;
    // Newer content may be added during the comparison.
    const readBefore: Digests = new Map(before?.read);
    const files = new Set([...(candidate ?? accepted).digests.keys(), ...readBefore.keys()]);
    const seen = await digestFiles(files, Date.now());
    if (isStopped) return;
    if (isDeepStrictEqual(seen, lastSeen) && !isDeepStrictEqual(seen, seenTwice.at(-1))) seenTwice.push(seen);
    lastSeen = seen;
    acceptCandidate();

    if (before !== undefined && before === underWay) cancelOutdated(before, differ(readBefore, seen));
    const isNews = differ((candidate ?? accepted).digests, seen);
    if (isNews) retryPauseMs = 0;
    const isSettled = !isNews && candidate?.kind === 'unsettled' && wasSeenTwice(candidate.digests);
    const isDue = isNews || isSettled || performance.now() >= retryAtMs;
    if (underWay === undefined && isDue) void load(seen, isSettled);
    // Comparisons do not overlap.
    timer = setTimeout(compare, intervalMs);
  }

  async function load(seen: Digests, isLong: boolean): Promise<void> {
    const read = new Map<string, string>();
    const slowTimer = setTimeout(() => onSlow?.([...read.keys()].at(-1) ?? file), bounds.configLoadSlowMs);
    const mine: LoadUnderWay = { read, isLong, outdatedMs: undefined, slowTimer };
    underWay = mine;
    retryAtMs = Number.POSITIVE_INFINITY;
    const settled = new Set([accepted.digests, ...seenTwice].flatMap((digests) => [...digests.values()]));
    seenTwice = [];
    let loaded: LoadedInThread | UnsettledLoad;
    try {
      const onRead = (name: string, digest: string) => void read.set(name, digest);
      loaded = await loader.load({ file, env, lastValid: inForce, onRead, settled }, inForce?.settings);
      retryPauseMs = 0;
    } catch (error) {
      if (error instanceof UnsettledContent) loaded = { kind: 'unsettled', digests: read };
      else loaded = retryLater(error, new Map([...seen, ...read]));
    }
    clearTimeout(slowTimer);
    if (isStopped || underWay !== mine) return;
    underWay = undefined;
    patience = 1;
    candidate = loaded;
    acceptCandidate();
  }

  /** After the thread has died, for example out of memory. The gateway keeps the current settings. */
  function retryLater(error: unknown, digests: Digests): LoadedInThread {
    retryPauseMs = Math.min(2 * retryPauseMs || bounds.configRetryPauseMs, bounds.configRetryPauseMaxMs);
    retryAtMs = performance.now() + retryPauseMs;
    return failedLoad(file, error, digests);
  }

  function cancelOutdated(load: LoadUnderWay, isOutdated: boolean): void {
    if (!isOutdated) {
      load.outdatedMs = undefined;
      return;
    }
    load.outdatedMs ??= performance.now();
    const boundMs = load.isLong ? bounds.configOutdatedParseMs : bounds.configOutdatedLoadMs;
    if (performance.now() - load.outdatedMs < patience * boundMs) return;
    clearTimeout(load.slowTimer);
    // The promise of the cancelled load never settles.
    loader.close();
    underWay = undefined;
    patience *= 2;
  }

  function acceptCandidate(): void {
    if (candidate === undefined || candidate.kind === 'unsettled' || !wasSeenTwice(candidate.digests)) return;
    const [now, before] = [candidate, accepted];
    accepted = now;
    candidate = undefined;
    if (identityOf(now) === identityOf(before)) return;
    const rejectedBefore = rejected;
    rejected = rejectedBy(now, rejectedBefore);
    const isSame = identityOfKept(rejected) === identityOfKept(rejectedBefore);
    if (now.kind === 'valid') putInForce(now, rejectedBefore !== undefined && rejected === undefined);
    if (rejected !== undefined && (now.kind === 'invalid' || !isSame)) onInvalid(rejected);
  }

  function wasSeenTwice(digests: Digests): boolean {
    return seenTwice.some((seen) => agree(digests, seen));
  }

  function putInForce(now: ValidInThread, isRepaired: boolean): void {
    const before = inForce?.settings;
    const isNews = before === undefined || now.settings.version !== before.version;
    // The thread computes its next message as a difference from settings that were passed to `onValid`.
    inForce = isNews || isRepaired ? now : { ...now, settings: before };
    // The thread's message applies only to the settings `now.base`.
    const message = now.base === before ? now.message : fullMessage(now.settings);
    if (isNews || isRepaired) onValid(now, message, rejected);
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

/** Read only at the start of a process. */
const fixedAtStart = [
  'workers',
  'listen',
  'admin',
  'redis',
  'usage',
  'directory',
] as const satisfies readonly (keyof Settings)[];

/** Some parts of a listener can change later. */
type FixedWhole = Exclude<(typeof fixedAtStart)[number], 'listen' | 'admin'>;

/** Fits `Settings`, and the settings in a response of the admin API. */
type FixedSettings = { readonly [Name in (typeof fixedAtStart)[number]]?: unknown };

/** Changed settings that take effect only at the next start. */
export function restartNeeded(before: FixedSettings, after: FixedSettings): string[] {
  return fixedAtStart.filter((name) => !isDeepStrictEqual(fixedPart(before, name), fixedPart(after, name)));
}

/** The loaded settings, with the values from `atStart` where they are fixed at the start. */
export function settingsInForce(atStart: Settings, loaded: Settings): Settings {
  const { redis: _, ...rest } = loaded;
  const { workers, usage, directory, redis } = atStart;
  // The type ensures that this object contains every fixed setting.
  const asAtStart: Pick<Settings, FixedWhole> = { workers, usage, directory, ...(redis && { redis }) };
  return {
    ...rest,
    ...asAtStart,
    stated: statedInForce(atStart.stated, loaded.stated),
    listen: listenerInForce(atStart.listen, loaded.listen),
    admin: listenerInForce(atStart.admin, loaded.admin),
  };
}

function statedInForce(atStart: StatedSettings, loaded: StatedSettings): StatedSettings {
  return {
    ...loaded,
    ...Object.fromEntries(fixedAtStart.map((name) => [name, atStart[name]])),
    listen: listenerInForce(atStart.listen, loaded.listen),
    admin: listenerInForce(atStart.admin, loaded.admin),
  };
}

function listenerInForce<Listener extends StatedListener | Settings['listen']>(
  atStart: Listener,
  loaded: Listener,
): Listener {
  const { host, port } = atStart;
  const { tls: _, ...rest } = loaded;
  const tls = atStart.tls && (loaded.tls ?? atStart.tls);
  return { ...rest, host, port, ...(tls && { tls }) } as Listener;
}

/** A listener can reload its certificate, but cannot switch TLS on or off. */
function fixedPart(settings: FixedSettings, name: (typeof fixedAtStart)[number]): unknown {
  if (name !== 'listen' && name !== 'admin') return settings[name];
  const { host, port, tls } = Object(settings[name]);
  return { host, port, isTls: tls !== undefined };
}

/** Identifies the content and the outcome of a load. */
function identityOf(loaded: Loaded | LoadedInThread): string {
  return loaded.kind === 'invalid' ? loaded.version : JSON.stringify([...loaded.digests]);
}

function rejectedBy(loaded: LoadedInThread, before: Rejected | undefined): Rejected | undefined {
  if (loaded.kind === 'invalid') return { ...loaded, kept: [] };
  const { kept, versionOnDisk: version, digests } = loaded;
  if (kept.length === 0) return undefined;
  const sinceOf = new Map(before?.kept.map(({ file, sinceMs }) => [file, sinceMs]));
  const problems = new Map(kept.flatMap((each) => each.problems).map((each) => [JSON.stringify(each), each]));
  return {
    problems: [...problems.values()],
    version,
    digests,
    kept: kept.map((each) => ({ ...each, sinceMs: sinceOf.get(each.file) ?? Date.now() })),
  };
}

function identityOfKept(rejected: Rejected | undefined): string {
  return JSON.stringify(rejected?.kept.map(({ file, digest }) => [file, digest]));
}

/** Whether every file in `digests` has the same content in `seen`. */
function agree(digests: Digests, seen: Digests): boolean {
  return [...digests].every(([file, digest]) => seen.get(file) === digest);
}

/** Whether a file that is in both maps has different content. */
function differ(digests: Digests, seen: Digests): boolean {
  return [...digests].some(([file, digest]) => seen.has(file) && seen.get(file) !== digest);
}
