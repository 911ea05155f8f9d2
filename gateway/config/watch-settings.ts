import { isDeepStrictEqual } from 'node:util';
import type { Settings } from '../shared/model.ts';
import type { Bounds } from '../shared/timeouts-and-sizes.ts';
import type { KeptFile } from './last-valid/keep-valid-files.ts';
import type { Loaded, LoadOptions, ValidSettings } from './load-settings.ts';
import type { Problem } from './problems/problem.ts';
import {
  createSettingsLoader,
  failedLoad,
  type LoadedInThread,
  type LoaderBounds,
  type SettingsLoader,
  type ValidInThread,
} from './settings-loader.ts';
import { fullMessage, type SettingsMessage } from './settings-message.ts';
import { createDigestFiles, type DigestBounds } from './source/digest-files.ts';
import type { Digests } from './source/read-config-file.ts';

export interface WatchOptions extends Pick<LoadOptions, 'file' | 'env'> {
  /** The result of the first load, which is in force. */
  readonly initial: Loaded | LoadedInThread;
  /** That has loaded it; absent: another is made, which has to read everything at the first edit. */
  readonly loader?: SettingsLoader;
  /**
   * Called once for all new settings, also when invalid content is changed back to what is in force. The message leads from the
   * settings of the call before, at first from those of `initial`, to these. Files at fault are not in these settings; then
   * `onInvalid` is called next, unless it was called for the same files.
   */
  readonly onValid: (
    loaded: Omit<ValidSettings, 'contents'>,
    message: SettingsMessage,
    rejected?: Rejected,
  ) => void;
  /** Called once for each new content that is not in force. */
  readonly onInvalid: (rejected: Rejected) => void;
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

/** What is on disk and not in force. */
export interface Rejected {
  readonly problems: readonly Problem[];
  /** Of all content on disk, as far as it was read. */
  readonly version: string;
  /** The files that keep their last valid content. None where the load failed as a whole: then everything does. */
  readonly kept: readonly (KeptFile & { readonly sinceMs: number })[];
}

/** A load that has not ended yet. */
interface LoadUnderWay {
  readonly startedMs: number;
  /** The files that it has read so far, with the digests of their content then. */
  readonly read: Map<string, string>;
  readonly slowTimer: NodeJS.Timeout;
}

/**
 * Compares the content of every configuration file at an interval. That sees what file events miss: editors that replace
 * the file, the symlink swaps of Kubernetes, bind mounts.
 *
 * New content is loaded as soon as it is seen. It takes effect once two comparisons in a row have found exactly the
 * content that was loaded: a file that is still being written may be valid YAML that lacks its last keys. The comparisons
 * go on during a load, and later edits do not undo the two. So edits that follow each other faster than loads cannot keep
 * all of them from taking effect.
 *
 * A load that takes long is given up when the files it has read have changed since: a text that takes minutes to parse
 * must not delay its own repair. The load after one that was given up has twice the time before it can be given up too.
 * So even where every load takes long and edits do not end, some load is finished.
 */
export function watchSettings(options: WatchOptions): SettingsWatch {
  const { file, env, initial, loader = createSettingsLoader(options.bounds), bounds } = options;
  const { onValid, onInvalid, onSlow } = options;
  const { configPollIntervalMs: intervalMs, configLoadSlowMs: slowAfterMs } = bounds;
  const digestFiles = createDigestFiles(bounds);
  let accepted = initial;
  /** The last valid one. */
  let inForce: ValidSettings | ValidInThread | undefined = initial.kind === 'valid' ? initial : undefined;
  let rejected: Rejected | undefined;
  /** The result of a load that has not taken effect yet. */
  let candidate: LoadedInThread | undefined;
  let underWay: LoadUnderWay | undefined;
  /** How long a load goes on though its files have changed. */
  let patienceMs = slowAfterMs;
  /** When a load is tried again after its thread has died, and the length of that pause. */
  let retryAtMs = Number.POSITIVE_INFINITY;
  let retryPauseMs = 0;
  let lastSeen: Digests = new Map();
  /** Contents that two comparisons in a row have found since the last load began. */
  let seenTwice: Digests[] = [];
  let isStopped = false;
  let timer = setTimeout(compare, intervalMs);

  async function compare(): Promise<void> {
    const before = underWay;
    // What the load reads from now on may be newer than what this comparison finds.
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
    // Only now, so that no two comparisons overlap.
    timer = setTimeout(compare, intervalMs);
  }

  async function load(seen: Digests): Promise<void> {
    const read = new Map<string, string>();
    const slowTimer = setTimeout(() => onSlow?.([...read.keys()].at(-1) ?? file), slowAfterMs);
    const mine: LoadUnderWay = { startedMs: performance.now(), read, slowTimer };
    underWay = mine;
    retryAtMs = Number.POSITIVE_INFINITY;
    seenTwice = [];
    let loaded: LoadedInThread;
    try {
      const onRead = (name: string, digest: string) => void read.set(name, digest);
      loaded = await loader.load({ file, env, lastValid: inForce, onRead }, inForce?.settings);
      retryPauseMs = 0;
    } catch (error) {
      // The thread has died, of memory for example. The settings in force stay, and the load is tried again later.
      loaded = failedLoad(file, error, new Map([...seen, ...read]));
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
    // The promise of that load never settles.
    loader.close();
    underWay = undefined;
    patienceMs *= 2;
  }

  function acceptCandidate(): void {
    if (candidate === undefined) return;
    const { digests } = candidate;
    if (!seenTwice.some((seen) => agree(digests, seen))) return;
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

  function putInForce(now: ValidInThread, isRepaired: boolean): void {
    const before = inForce?.settings;
    const isNews = before === undefined || now.settings.version !== before.version;
    // The thread builds messages on settings that were handed over.
    inForce = isNews || isRepaired ? now : { ...now, settings: before };
    // Others may have come into force while it was loaded.
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

/** The settings that a process reads only when it starts: its workers, its sockets and its store. */
const fixedAtStart = [
  'workers',
  'listen',
  'admin',
  'redis',
  'usage',
  'directory',
] as const satisfies readonly (keyof Settings)[];

/** Of listeners only parts are fixed. */
type FixedWhole = Exclude<(typeof fixedAtStart)[number], 'listen' | 'admin'>;

/** As far as it matters for that: settings, or what is shown of them. */
type FixedSettings = { readonly [Name in 'listen' | 'admin']: FixedListener } & {
  readonly [Name in FixedWhole]?: unknown;
};

interface FixedListener {
  readonly host: string;
  readonly port: number;
  readonly tls?: unknown;
}

/** The names of changed settings that take effect only at the next start. */
export function restartNeeded(before: FixedSettings, after: FixedSettings): string[] {
  return fixedAtStart.filter((name) => !isDeepStrictEqual(fixedPart(before, name), fixedPart(after, name)));
}

/** What is in force of loaded settings in a process that was started with others. */
export function settingsInForce(atStart: Settings, loaded: Settings): Settings {
  const { redis: _, ...rest } = loaded;
  const { workers, usage, directory, redis } = atStart;
  // By its type a setting that joins the list must be here too.
  const asAtStart: Pick<Settings, FixedWhole> = { workers, usage, directory, ...(redis && { redis }) };
  return {
    ...rest,
    ...asAtStart,
    listen: listenerInForce(atStart.listen, loaded.listen),
    admin: listenerInForce(atStart.admin, loaded.admin),
  };
}

function listenerInForce<Listener extends Settings['listen']>(atStart: Listener, loaded: Listener): Listener {
  const { host, port } = atStart;
  const { tls: _, ...rest } = loaded;
  const tls = atStart.tls && (loaded.tls ?? atStart.tls);
  return { ...rest, host, port, ...(tls && { tls }) } as Listener;
}

/** A listener reads its certificate again; whether it speaks TLS is fixed. */
function fixedPart(settings: FixedSettings, name: (typeof fixedAtStart)[number]): unknown {
  if (name !== 'listen' && name !== 'admin') return settings[name];
  const { host, port, tls } = settings[name];
  return { host, port, isTls: tls !== undefined };
}

/** The same for two loads of the same content that ended in the same way. */
function identityOf(loaded: Loaded | LoadedInThread): string {
  return loaded.kind === 'invalid' ? loaded.version : JSON.stringify([...loaded.digests]);
}

function rejectedBy(loaded: LoadedInThread, before: Rejected | undefined): Rejected | undefined {
  if (loaded.kind === 'invalid') return { ...loaded, kept: [] };
  const { kept, versionOnDisk: version } = loaded;
  if (kept.length === 0) return undefined;
  const sinceOf = new Map(before?.kept.map(({ file, sinceMs }) => [file, sinceMs]));
  const problems = new Map(kept.flatMap((each) => each.problems).map((each) => [JSON.stringify(each), each]));
  return {
    problems: [...problems.values()],
    version,
    kept: kept.map((each) => ({ ...each, sinceMs: sinceOf.get(each.file) ?? Date.now() })),
  };
}

function identityOfKept(rejected: Rejected | undefined): string {
  return JSON.stringify(rejected?.kept.map(({ file, digest }) => [file, digest]));
}

/** Whether every file of the one has the same content in the other. */
function agree(digests: Digests, seen: Digests): boolean {
  return [...digests].every(([file, digest]) => seen.get(file) === digest);
}

/** Whether a file that is in both has another content in each. */
function differ(digests: Digests, seen: Digests): boolean {
  return [...digests].some(([file, digest]) => seen.has(file) && seen.get(file) !== digest);
}
