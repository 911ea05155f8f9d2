import type { NewLeak } from '../../../fleet/changes.ts';
import { withSecrets } from '../../../keys/directory/change-secrets.ts';
import type { KeyDirectory } from '../../../keys/directory/key-directory.ts';
import { descendantsOf } from '../../../keys/directory/lineage.ts';
import { tableIn } from '../../../keys/key-table.ts';
import type { BlockedSecrets } from '../../../keys/leaks/blocked/blocked-secrets.ts';
import { endLine, lineOf } from '../../../keys/leaks/end-line.ts';
import type { Away } from '../../../redis/redis-reply.ts';
import type { Leak, Settings } from '../../../shared/model.ts';
import { digestStart } from '../../../shared/secrets.ts';
import type { Bounds } from '../../../shared/timeouts-and-sizes.ts';
import type { ReportedSecret } from './read-report.ts';
import type { Slices } from './slices.ts';

/** The judgement of a reported secret. */
export type Judged =
  | { readonly kind: 'unknown' }
  | {
      readonly kind: 'known';
      readonly keyId: string;
      /** Whether the secret is refused now because it leaked. */
      readonly ended: boolean;
      /** The first digits of the digests of the secrets that ended too, because the holder of the key issued them from this secret. */
      readonly descendants: readonly string[];
    };

/** The judgements in the order of the report. `away`: the store failed, so the reporter must send the report again. */
export type Applied =
  | { readonly kind: 'applied'; readonly judged: readonly Judged[] }
  | { readonly kind: 'away'; readonly reason: string };

export interface ApplyDeps {
  /** The key directory; undefined when all keys are in the configuration. */
  readonly directory: Pick<KeyDirectory, 'find' | 'replace' | 'confirmAllIssued'> | undefined;
  readonly blocked: Pick<BlockedSecrets, 'add' | 'find' | 'read'>;
  /** The store's clock, epoch ms. */
  readonly nowMs: () => number;
  readonly bounds: Bounds;
}

export interface ReportTerms {
  readonly settings: Pick<Settings, 'keys' | 'leaks'>;
  /** The name of the reporter for the record of changes: `github`, or the name of a token. */
  readonly by: string;
  /** Records a leak. A leak that is recorded again, by this process or by another process, must stay one record. */
  readonly record: (leak: NewLeak) => void;
  readonly slices: Slices;
}

/**
 * Applies a report: each secret that belongs to a key ends, unless the setting `onLeak` is `report`. A report can be sent again at any time.
 * The second report changes nothing and gets the same result.
 */
export async function applyReport(
  reported: readonly ReportedSecret[],
  terms: ReportTerms,
  deps: ApplyDeps,
): Promise<Applied> {
  const judged = new Map<string, Judged>();
  const toBlock: OwnSecret[] = [];
  const toLookUp: ReportedSecret[] = [];
  const seen = new Set<string>();
  const isAllIssued = (await deps.directory?.confirmAllIssued()) ?? true;
  for (const secret of reported) {
    await terms.slices.rest();
    if (seen.has(secret.digest)) continue;
    seen.add(secret.digest);
    const keyId = keyInConfiguration(secret.digest, terms, deps);
    if (keyId !== undefined) toBlock.push({ ...secret, keyId });
    else if (deps.directory !== undefined && !(secret.isInvented && isAllIssued)) toLookUp.push(secret);
  }
  const away =
    (await blockAll(toBlock, judged, terms, deps)) ?? (await lookUpAll(toLookUp, judged, terms, deps));
  if (away !== undefined) return away;
  return { kind: 'applied', judged: reported.map(({ digest }) => judged.get(digest) ?? unknown) };
}

const unknown: Judged = { kind: 'unknown' };

type Failed = Extract<Applied, { kind: 'away' }>;

/** A reported secret of a key in the configuration. */
interface OwnSecret extends ReportedSecret {
  readonly keyId: string;
}

/** Returns the key of the configuration that has, or had until recently, this secret. */
function keyInConfiguration(
  digest: string,
  { settings }: ReportTerms,
  { blocked }: ApplyDeps,
): string | undefined {
  return settings.keys.find(digest)?.key.id ?? blocked.find(digest)?.keyId;
}

/**
 * Blocks secrets of the configuration, a few at a time, because only an operator can remove a secret from the file. If a block fails, the
 * other blocks of its group are still made and recorded.
 */
async function blockAll(
  secrets: readonly OwnSecret[],
  judged: Map<string, Judged>,
  terms: ReportTerms,
  deps: ApplyDeps,
): Promise<Failed | undefined> {
  for await (const part of partsOf(secrets, terms, deps)) {
    const results = await Promise.all(part.map((secret) => block(secret, terms, deps)));
    for (const [index, { digest }] of part.entries()) {
      const one = results[index];
      if (one === undefined) continue;
      if ('reason' in one) return one;
      judged.set(digest, one);
    }
  }
  if (secrets.length > 0) await deps.blocked.read();
  return undefined;
}

async function block(
  { digest, place, keyId }: OwnSecret,
  { settings, by, record }: ReportTerms,
  deps: ApplyDeps,
): Promise<Judged | Failed> {
  const { blocked, nowMs } = deps;
  const leak = { atMs: nowMs(), by, ended: settings.leaks.onLeak === 'revoke', ...place };
  const descendants = leak.ended ? descendantsInFile(keyId, digest, settings) : [];
  const found = { keyId, digestStart: digestStart(digest), leak, descendants: descendants.map(digestStart) };
  // The descendants are blocked first, so a report of a secret that is blocked already needs to block nothing more.
  for (const descendant of descendants) {
    const inherited = { ...leak, ancestor: digestStart(digest) };
    const added = await blocked.add({ digest: descendant, keyId, leak: inherited });
    if (added.kind === 'away') return failedBy(added, found, record);
  }
  const added = await blocked.add({ digest, keyId, leak });
  if (added.kind === 'away') return failedBy(added, found, record);
  if (added.kind === 'added') record(found);
  else recordAgain({ ...found, leak: added.leak }, record, deps);
  return { kind: 'known', keyId, ended: added.leak.ended, descendants: found.descendants };
}

/** Returns the digests of the secrets of a key of the configuration that descend from a secret. */
function descendantsInFile(
  keyId: string,
  digest: string,
  { keys }: Pick<Settings, 'keys'>,
): readonly string[] {
  const { secrets = [] } = tableIn(keys).statedOf(keyId) ?? {};
  return [
    ...descendantsOf(
      digest,
      secrets.map(({ sha256, issuedFrom }) => ({ digest: sha256, issuedFrom })),
    ),
  ];
}

/** Returns the failure of the store. A leak that the store may have stored is recorded. */
function failedBy({ mayHaveRun, reason }: Away, leak: NewLeak, record: ReportTerms['record']): Failed {
  if (mayHaveRun) record({ ...leak, error: reason });
  return { kind: 'away', reason };
}

/** Records a leak that an earlier report has stored, because the process that stored the leak may have died before it recorded the leak. */
function recordAgain(known: NewLeak, record: ReportTerms['record'], { nowMs, bounds }: ApplyDeps): void {
  if (nowMs() - known.leak.atMs < bounds.leakRecordedAgainMs) record(known);
}

/** Looks secrets up in the key directory, a few at a time. Secrets that are found end one by one, because they may belong to one key. */
async function lookUpAll(
  secrets: readonly ReportedSecret[],
  judged: Map<string, Judged>,
  terms: ReportTerms,
  deps: ApplyDeps,
): Promise<Failed | undefined> {
  for await (const part of partsOf(secrets, terms, deps)) {
    const found = await Promise.all(part.map(({ digest }) => deps.directory?.find(digest)));
    for (const [index, secret] of part.entries()) {
      if (found[index]?.kind === 'absent') continue;
      const one = await endInDirectory(secret, terms, deps);
      if ('reason' in one) return one;
      judged.set(secret.digest, one);
    }
  }
  return undefined;
}

/** Divides secrets into parts for simultaneous calls to the store. The work rests after each part. */
async function* partsOf<One>(
  secrets: readonly One[],
  { slices }: ReportTerms,
  { bounds: { leakLookUpsAtOnce: atOnce } }: ApplyDeps,
): AsyncGenerator<readonly One[]> {
  for (let from = 0; from < secrets.length; from += atOnce) {
    yield secrets.slice(from, from + atOnce);
    await slices.rest();
  }
}

/**
 * Ends a secret of the key directory and its descendants in one change of the key. After a concurrent change, the function reads the key
 * again. A rotation that began before the report therefore either fails, because the key has changed, or its new secret ends too.
 */
async function endInDirectory(
  { digest, place }: ReportedSecret,
  { settings, by, record }: ReportTerms,
  deps: ApplyDeps,
): Promise<Judged | Failed> {
  const { directory, nowMs, bounds } = deps;
  if (directory === undefined) return unknown;
  const ends = settings.leaks.onLeak === 'revoke';
  for (let attempt = 1; attempt <= bounds.directoryChangeAttemptsMax; attempt++) {
    const found = await directory.find(digest);
    if (found.kind === 'away') return { kind: 'away', reason: found.reason };
    const line = found.kind === 'found' ? lineOf(found.key, digest) : undefined;
    if (found.kind === 'absent' || line === undefined) return unknown;
    const { key } = found;
    const of = { keyId: key.id, digestStart: digestStart(digest) };
    const known = line.leak;
    if (known !== undefined && (ends ? known.ended && line.hasEnded : true)) {
      const descendants = known.ended ? line.descendants : [];
      recordAgain({ ...of, leak: known, descendants }, record, deps);
      return { kind: 'known', keyId: key.id, ended: known.ended, descendants };
    }
    const leak: Leak = { atMs: nowMs(), by, ended: ends, ...place };
    const descendants = ends ? line.descendants : [];
    const ended = endLine(key, digest, leak);
    const reply = await directory.replace(withSecrets(ended, ended.secrets), key);
    if (reply.kind === 'written') {
      record({ ...of, leak, descendants });
      return { kind: 'known', keyId: key.id, ended: ends, descendants };
    }
    if (reply.kind === 'away') return failedBy(reply, { ...of, leak, descendants }, record);
  }
  return { kind: 'away', reason: 'other requests are changing the key' };
}
