import type { IncomingHttpHeaders } from 'node:http';
import type { KeyChange } from '../../../fleet/changes.ts';
import type { DirectoryKey } from '../../../keys/directory/directory-key.ts';
import type { KeyDirectory } from '../../../keys/directory/key-directory.ts';
import type { Change } from '../../../quota/adjust.ts';
import type { Away } from '../../../redis/redis-reply.ts';
import type { QuotaChanged, StoreFailure } from '../../../request/limit/store/quota-store.ts';
import { type AdminToken, type Author, keyIdPattern } from '../../../shared/model.ts';
import { type AdminResponse, errorResponse, storeUnavailable } from '../../admin-response.ts';
import { type KeySources, noSuchKey as keyNotFound, placeOfKey } from '../key-sources.ts';

export interface KeyChangeSources extends Omit<KeySources, 'directory' | 'usage'> {
  /** The key directory; undefined when all keys are in the configuration. */
  readonly directory: KeyDirectory | undefined;
  /** Changes the ban or the grant of a key on all processes. */
  readonly limiter: {
    adjust(keyId: string, change: Change): Promise<StoreReply>;
  };
  /** Records the change in the record of changes, in the list of events and in the log. */
  readonly record: (change: KeyChange) => void;
}

export type StoreReply = QuotaChanged | StoreFailure;

export interface ChangeRequest {
  readonly params: Readonly<Record<string, string>>;
  readonly headers: IncomingHttpHeaders;
  readonly token: AdminToken;
  readonly author: Author;
}

export interface Refused {
  readonly kind: 'refused';
  readonly response: AdminResponse;
}

export function refused(...error: Parameters<typeof errorResponse>): Refused {
  return { kind: 'refused', response: errorResponse(...error) };
}

export interface FoundInDirectory {
  readonly kind: 'found';
  readonly key: DirectoryKey;
  readonly directory: KeyDirectory;
}

/** Refuses a request that changes a key of the configuration. */
export async function findInDirectory(
  { settings, directory }: Pick<KeyChangeSources, 'settings' | 'directory'>,
  id: string,
): Promise<FoundInDirectory | Refused> {
  if (settings().keys.has(id)) {
    const place = placeOfKey(settings(), id);
    const where = place === undefined ? 'in the configuration' : `in ${place.file}, line ${place.line}`;
    return refused('conflict', `The key ${id} is defined ${where}: edit it there.`);
  }
  // The check of the id keeps invalid ids out of Redis keys.
  if (directory === undefined || !keyIdPattern.test(id)) return noSuchKey();
  const reply = await directory.read(id);
  switch (reply.kind) {
    case 'found':
      return { kind: 'found', key: reply.key, directory };
    case 'absent':
      return noSuchKey();
    case 'away':
      return storeFailed({ ...reply, mayHaveRun: false });
  }
}

export function noSuchKey(): Refused {
  return { kind: 'refused', response: keyNotFound() };
}

export function noDirectory(): Refused {
  return refused(
    'conflict',
    'The gateway was started without a key directory: write `keys: { …, directory: true }` into its configuration, and restart it.',
  );
}

/**
 * The response when Redis is away. If the change may have been made, the
 * caller also writes `message` into the record of changes.
 */
export function storeFailed({ mayHaveRun, reason }: Pick<Away, 'mayHaveRun' | 'reason'>): Refused & {
  readonly message: string;
} {
  const advice = mayHaveRun
    ? 'The change may have been made: check before you repeat it.'
    : 'Nothing was changed: retry later.';
  const cause = `Redis failed (${reason})`;
  const response = storeUnavailable(`. ${advice}`, cause);
  return { kind: 'refused', response, message: `${cause}. ${advice}` };
}
