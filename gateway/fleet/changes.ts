import type { LimitsChange, LimitsChangeKind } from '../capabilities/interfaces/events.ts';
import { keyChanges, limitsChanges } from '../capabilities/lists/events.ts';
import type { StatedKey } from '../keys/key-schema.ts';
import type { LimitsByField } from '../keys/limits/limit-fields.ts';
import type { RedisConnection } from '../redis/redis-connection.ts';
import { redisKeys } from '../redis/redis-keys.ts';
import type { AdminToken, Author, Leak } from '../shared/model.ts';
import { digestStart } from '../shared/secrets.ts';
import type { Bounds } from '../shared/timeouts-and-sizes.ts';
import { createSharedList, type Listed, type PageQuery } from './shared-list.ts';

/**
 * `secret`: a secret was issued or removed. `update`: other members were changed. `leak`: a secret was found where everyone can read it.
 * The last actions belong to capabilities.
 */
export const keyActions = [
  'create',
  'secret',
  'rotate',
  'revoke',
  'restore',
  'update',
  'delete',
  'ban',
  'unban',
  'grant',
  'ungrant',
  'import',
  'leak',
  ...(Object.keys(keyChanges) as (keyof typeof keyChanges)[]),
] as const;

export type KeyAction = (typeof keyActions)[number];

type LimitsAction = keyof typeof limitsChanges;
const limitsChangeKinds: ReadonlyMap<string, LimitsChangeKind> = new Map(Object.entries(limitsChanges));

export const changeActions = [
  ...keyActions,
  'token',
  ...(Object.keys(limitsChanges) as LimitsAction[]),
  'reload',
  'reload_failed',
] as const satisfies readonly Change['action'][];

const knownActions: ReadonlySet<string> = new Set(changeActions);

/** The values are JSON, without secrets and complete digests. */
export type ChangedMembers = Readonly<Record<string, unknown>>;

/**
 * A change of a key, or of many keys together, by an operator or by the holder of the key. `by` is `holder` for the holder of the key, and
 * `github` for a report of GitHub.
 */
export interface KeyChange extends Author {
  readonly action: KeyAction;
  /** Absent for a change of many keys. */
  readonly key?: string | undefined;
  /** The plan at the time of the change, for receivers of webhooks. The record of changes does not have it. */
  readonly plan?: string | undefined;
  readonly before?: ChangedMembers | undefined;
  readonly after?: ChangedMembers | undefined;
  /** The limits that applied to the key before and after a change of its plan or limits, without grants. */
  readonly appliedLimits?: { readonly before: LimitsByField; readonly after: LimitsByField } | undefined;
  /** The store gave no reply, but may still have written the change. */
  readonly error?: string;
}

/**
 * An edited file, as the first process that reported the edit saw it. The owner of a file is not always the author of the edit, and a copied
 * file can have an earlier time.
 */
export interface EditedFile {
  readonly name: string;
  /** The name of the owner, or the number of a user without a name on this host; absent for a file that was removed. */
  readonly owner?: string;
  /** The modification time, ISO 8601. */
  readonly modifiedAt?: string;
}

/** The previous values of limits that a reload changed. */
export interface LimitsBefore {
  /** By name. A custom plan has no limits of its own. */
  readonly plans?: Readonly<Record<string, LimitsByField>> | undefined;
  /** By id. */
  readonly keys?: Readonly<Record<string, Pick<StatedKey, 'plan' | 'limits' | 'groups'>>> | undefined;
}

/** A successful change or a failed attempt. */
export type Change =
  | KeyChange
  | {
      readonly action: 'reload' | 'reload_failed';
      /** `file`: an edit of the configuration files. */
      readonly by: string;
      /** The names of the edited files. Earlier releases of Tollgate recorded only the names. */
      readonly files?: readonly string[] | undefined;
      readonly editedFiles?: readonly EditedFile[] | undefined;
      /** Versions of the configuration. In a failed reload, `after` was rejected. */
      readonly before: string;
      readonly after?: string;
      /** "free 60 → 50 a minute". */
      readonly edits?: readonly string[];
      readonly limitsBefore?: LimitsBefore | undefined;
      /** The ids of the first keys that the reload added, changed or removed. */
      readonly keys?: readonly string[] | undefined;
      /** The ids of the first keys that the reload removed. */
      readonly removedKeys?: readonly string[] | undefined;
      /** Why it failed. */
      readonly error?: string;
    }
  | {
      /** A reload changed the tokens of the admin API. */
      readonly action: 'token';
      readonly by: string;
      readonly before: ChangedMembers;
      readonly after: ChangedMembers;
    }
  | (LimitsChange & { readonly action: LimitsAction });

export type RecordedChange = Listed<Change>;

/** Absent: all changes. */
export interface ChangesFilter {
  /** The id of a key: its changes, and edits of files that changed it. */
  readonly key?: string | undefined;
  /** The author of the change. */
  readonly by?: string | undefined;
  /** Epoch ms. */
  readonly fromMs?: number | undefined;
  readonly toMs?: number | undefined;
}

export interface ChangesPage {
  /** False while Redis is unavailable; then the page has only the changes of this process. */
  readonly isComplete: boolean;
  /** The newest first. */
  readonly changes: readonly RecordedChange[];
  readonly next?: string | undefined;
}

export type Changes = ReturnType<typeof createChanges>;

/**
 * Shared by all processes. Every process reloads the same files, so their reloads are merged into one change. A change of a key happens on
 * one process and is never merged, except for a leak (`leakIdentity`).
 */
export function createChanges({
  bounds,
  ...deps
}: {
  readonly records: RedisConnection | undefined;
  readonly processId: string;
  readonly nowMs: () => number;
  readonly bounds: Bounds;
}) {
  const list = createSharedList<Change>({
    ...deps,
    names: (prefix) => [redisKeys.changes.name(prefix), redisKeys.changesReports.name(prefix)],
    entriesMax: bounds.changesMax,
    keptMs: bounds.changesKeptMs,
    bounds,
  });
  return {
    record(change: Change) {
      const { changesMergedWithinMs, changeErrorCharsMax, changeMemberCharsMax } = bounds;
      if (isLimitsChange(change)) {
        const what = limitsChangeKind(change).identity?.(change);
        if (what === undefined)
          list.record({ what: ['plan', deps.processId], mergedWithinMs: 0, entry: change });
        else list.record({ what, mergedWithinMs: bounds.changesKeptMs, entry: change });
        return;
      }
      switch (change.action) {
        case 'reload':
        case 'reload_failed': {
          const { action, by, before, after, error } = change;
          list.record({
            what: [action, by, before, after],
            mergedWithinMs: changesMergedWithinMs,
            entry: error === undefined ? change : { ...change, error: error.slice(0, changeErrorCharsMax) },
          });
          return;
        }
        case 'token': {
          const entry = withShortMembers(change, changeMemberCharsMax);
          const what = [entry.action, entry.before, entry.after];
          list.record({ what, mergedWithinMs: changesMergedWithinMs, entry });
          return;
        }
        default: {
          const entry = withShortMembers(change, changeMemberCharsMax);
          const leak = leakIdentity(change);
          if (leak === undefined) list.record({ what: ['key', deps.processId], mergedWithinMs: 0, entry });
          else list.record({ what: leak, mergedWithinMs: bounds.changesKeptMs, entry });
        }
      }
    },
    /** During a rolling upgrade, actions that only the newer version knows are omitted. */
    async read({ limit, after, ...filter }: PageQuery & ChangesFilter): Promise<ChangesPage> {
      const { entries, ...page } = await list.read({ limit, after, isAsked: matching(filter) });
      return { ...page, changes: entries.filter(({ action }) => knownActions.has(action)) };
    },
    close: list.close,
  };
}

/** Undefined for a filter that every change matches. */
function matching({
  key,
  by,
  fromMs,
  toMs,
}: ChangesFilter): ((change: RecordedChange) => boolean) | undefined {
  if ([key, by, fromMs, toMs].every((part) => part === undefined)) return undefined;
  return (change) =>
    (key === undefined || isOfKey(change, key)) &&
    (by === undefined || change.by === by) &&
    Date.parse(change.at) >= (fromMs ?? 0) &&
    Date.parse(change.at) < (toMs ?? Number.POSITIVE_INFINITY);
}

function isOfKey(change: RecordedChange, key: string): boolean {
  if ('key' in change && change.key === key) return true;
  if (change.action !== 'reload') return false;
  // Records of an earlier version name only the keys with other limits.
  const { keys = Object.keys(change.limitsBefore?.keys ?? {}), removedKeys = [] } = change;
  return keys.includes(key) || removedKeys.includes(key);
}

/** Whether a capability changed the limits of a plan. */
export function isLimitsChange<One extends { readonly action: string }>(
  change: One,
): change is Extract<One, LimitsChange> {
  return limitsChangeKinds.has(change.action);
}

export function limitsChangeKind({ action }: LimitsChange): LimitsChangeKind {
  const kind = limitsChangeKinds.get(action);
  if (kind === undefined) throw new Error(`no capability changes limits by ${action}`);
  return kind;
}

/** Shortens long members, such as hundreds of operations. The record only describes changes and is no backup. */
function withShortMembers<One extends Pick<KeyChange, 'before' | 'after'>>(
  change: One,
  charsMax: number,
): One {
  const short = (members: ChangedMembers) =>
    Object.fromEntries(
      Object.entries(members).map(([name, value]) => {
        const text = JSON.stringify(value) ?? '';
        return [name, text.length <= charsMax ? value : `${text.slice(0, charsMax)} …`];
      }),
    );
  return {
    ...change,
    before: change.before && short(change.before),
    after: change.after && short(change.after),
  };
}

/** A report has made the leak known, or has confirmed it shortly after. */
export interface NewLeak {
  readonly keyId: string;
  /** The first digits of the digest of the secret. */
  readonly digestStart: string;
  readonly leak: Leak;
  /** The first digits of the digests of the secrets that ended too, because the holder of the key issued them from this secret. */
  readonly descendants: readonly string[];
  /** Why the store gave no reply. It may still have stored the leak. */
  readonly error?: string | undefined;
}

export function leakChange({ keyId: key, digestStart, leak, descendants, error }: NewLeak): KeyChange {
  const { atMs, by, ended, url, source, type } = leak;
  const change = {
    action: 'leak',
    by,
    key,
    before: { secret: digestStart },
    after: {
      ended,
      url,
      source,
      type,
      reportedAt: new Date(atMs).toISOString(),
      descendants: descendants.length === 0 ? undefined : descendants,
    },
  } as const;
  return error === undefined ? change : { ...change, error };
}

/**
 * Undefined for any other change. A repeated report records a leak again, because the process that stored it may have died before it
 * recorded it. A record without a reply from the store has an identity of its own.
 */
export function leakIdentity({
  action,
  key,
  before,
  after,
  error,
}: KeyChange): readonly unknown[] | undefined {
  if (action !== 'leak') return undefined;
  return [action, key, before?.secret, after?.reportedAt, error === undefined];
}

/** The names of the tokens that a reload changed; undefined if none. */
export function tokenEdit(
  before: readonly AdminToken[],
  after: readonly AdminToken[],
): { readonly before: ChangedMembers; readonly after: ChangedMembers } | undefined {
  const [from, to] = [textsOf(before), textsOf(after)];
  const names = [...new Set([...from.keys(), ...to.keys()])].filter(
    (name) => from.get(name) !== to.get(name),
  );
  if (names.length === 0) return undefined;
  const only = (texts: ReadonlyMap<string, string>) =>
    Object.fromEntries(names.flatMap((name) => (texts.has(name) ? [[name, texts.get(name)]] : [])));
  return { before: only(from), after: only(to) };
}

/** "write, 1a2b3c4d" */
function textsOf(tokens: readonly AdminToken[]): ReadonlyMap<string, string> {
  return new Map(tokens.map(({ name, may, sha256 }) => [name, `${may}, ${digestStart(sha256)}`]));
}
