import type { KeyExpiring } from '../../../fleet/kinds/key-notices.ts';
import type { KeyDirectory } from '../../../keys/directory/key-directory.ts';
import type { StatedKey } from '../../../keys/key-schema.ts';
import { tableIn } from '../../../keys/key-table.ts';
import { planNameAt } from '../../../keys/plans/compile-key.ts';
import type { Leak, Settings } from '../../../shared/model.ts';
import { digestStart } from '../../../shared/secrets.ts';
import type { Bounds } from '../../../shared/timeouts-and-sizes.ts';
import { nearestMark, type ScanPeriod } from './marks.ts';

/** Receivers get an event this number of days before the expiry of a secret. */
const expiryMarks = [14, 1];

export interface KeysToScan {
  readonly settings: Pick<Settings, 'keys'>;
  readonly directory: Pick<KeyDirectory, 'page' | 'readMany'> | undefined;
  /** Returns the leak of a secret of the configuration, by the digest of the secret. */
  readonly leakOf?: ((digest: string) => Leak | undefined) | undefined;
  readonly bounds: Pick<Bounds, 'noticeScanKeysAtOnce'>;
}

/**
 * Finds the secrets whose expiry has reached a mark, in the configuration and in the directory. Disabled keys, and secrets that a leak has
 * ended, are omitted. The value undefined follows each part of the keys, so that the caller can pause.
 *
 * @throws when the directory did not reply for some keys, after the notices of all other keys
 */
export async function* expiringKeys(
  { settings, directory, leakOf, bounds }: KeysToScan,
  period: ScanPeriod,
): AsyncGenerator<KeyExpiring | undefined> {
  const atOnce = bounds.noticeScanKeysAtOnce;
  let read = 0;
  for (const { secrets, ...key } of tableIn(settings.keys).stated()) {
    const ends = secrets
      .filter(({ sha256 }) => !leakOf?.(sha256)?.ended)
      .map(({ sha256, expires }) => ({ digest: sha256, endMs: expires }));
    yield* noticesOf(key, ends, period);
    read += 1;
    if (read % atOnce === 0) yield undefined;
  }
  if (directory !== undefined) yield* expiringInDirectory(directory, settings, atOnce, period);
}

async function* expiringInDirectory(
  directory: NonNullable<KeysToScan['directory']>,
  { keys }: KeysToScan['settings'],
  limit: number,
  period: ScanPeriod,
): AsyncGenerator<KeyExpiring | undefined> {
  let after: string | undefined;
  let unread = 0;
  do {
    const page = await directory.page({ after, limit });
    if (page.kind === 'away') throw new Error(page.reason);
    const found = await directory.readMany(page.ids);
    if (found.kind === 'away') throw new Error(found.reason);
    for (const key of found.keys) {
      if (key === 'unknown') unread += 1;
      // A key of the configuration takes precedence.
      else if (key !== undefined && !keys.has(key.id)) {
        const ends = key.secrets
          .filter(({ leak }) => !leak?.ended)
          .map(({ digest, expiresMs }) => ({ digest, endMs: expiresMs }));
        yield* noticesOf(key, ends, period);
      }
    }
    yield undefined;
    after = page.next;
  } while (after !== undefined);
  if (unread > 0) throw new Error(`${unread} keys could not be read`);
}

function* noticesOf(
  {
    id,
    disabled,
    ...terms
  }: Pick<StatedKey, 'plan' | 'limits' | 'changes'> & {
    readonly id: string;
    readonly disabled?: boolean | undefined;
  },
  ends: readonly { readonly digest: string; readonly endMs: number | undefined }[],
  period: ScanPeriod,
): Generator<KeyExpiring> {
  if (disabled) return;
  const plan = planNameAt(terms, period.toMs);
  for (const { digest, endMs } of ends) {
    const days = endMs === undefined ? undefined : nearestMark(expiryMarks, endMs, period);
    if (endMs === undefined || days === undefined) continue;
    const hasOther = ends.some((other) => (other.endMs ?? Number.POSITIVE_INFINITY) > endMs);
    yield {
      kind: 'key_expiring',
      keyId: id,
      plan,
      digestStart: digestStart(digest),
      hasOther,
      expiresMs: endMs,
      days,
    };
  }
}
