import type { Bounds } from '../../shared/timeouts-and-sizes.ts';
import { deadBitNumber, deadField, refusedNumber, unknownSecrets, unreadSecrets } from '../record-fields.ts';
import { latest } from '../store/counts.ts';
import type { UnsentCounts } from '../unsent-counts.ts';
import { hourOfDay, type UsageCalendar } from '../usage-calendar.ts';
import { addressBit, deadAddressBits } from './address-estimate.ts';
import { NamesOfDay, others } from './key-usage.ts';

/** A presented secret that was not accepted, and the address of the client. */
export interface DeadSecretUse {
  /** Undefined if the secret belongs to no key, or is unread. */
  readonly keyId?: string | undefined;
  /** Whether the key directory did not reply, so that it is not known whether the secret is valid. */
  readonly isUnread?: boolean;
  readonly digestStart: string;
  readonly address: string;
}

/** A secret that is not valid and was used for an hour. */
export interface LongUse {
  readonly keyId: string;
  readonly digestStart: string;
  /** The first use, epoch ms. */
  readonly sinceMs: number;
  /** The day in UTC, numbered since 1970. */
  readonly day: number;
}

/** Makes the function that counts requests with secrets that are not valid, for all keys together. */
export function countDeadSecrets({
  calendar: { minuteMs, hourMs, dayMs },
  unsent,
  onLongUse,
  bounds,
}: {
  readonly calendar: UsageCalendar;
  readonly unsent: UnsentCounts;
  /** Called once for each secret and day. */
  readonly onLongUse?: ((use: LongUse) => void) | undefined;
  readonly bounds: Pick<Bounds, 'usageDeadSecretsMax'>;
}) {
  const names = new NamesOfDay();
  /** The present use of each named secret of the day, without a pause of 15 minutes. */
  let uses = new Map<string, { sinceMs: number; lastMs: number; isTold: boolean }>();
  let usesDay = 0;

  return (atMs: number, { keyId, digestStart, isUnread, address }: DeadSecretUse): void => {
    const day = Math.floor(atMs / dayMs);
    const withoutKey = isUnread ? unreadSecrets : unknownSecrets;
    const name = keyId === undefined ? withoutKey : `${digestStart}:${keyId}`;
    const isNamed = keyId === undefined || names.add(name, day, bounds.usageDeadSecretsMax);
    const field = deadField(isNamed ? name : others);
    if (!unsent.add(day, field, refusedNumber(hourOfDay(Math.floor(atMs / hourMs))), 1)) return;
    unsent.add(day, field, latest, atMs - day * dayMs);
    unsent.add(day, field, deadBitNumber(addressBit(address) % deadAddressBits), 1);
    if (isNamed && keyId !== undefined) noteUse(name, { keyId, digestStart, day }, atMs);
  };

  function noteUse(name: string, about: Omit<LongUse, 'sinceMs'>, atMs: number): void {
    if (about.day !== usesDay) {
      uses = new Map();
      usesDay = about.day;
    }
    const use = uses.get(name) ?? { sinceMs: atMs, lastMs: atMs, isTold: false };
    uses.set(name, use);
    if (atMs - use.lastMs >= pauseMinutes * minuteMs) use.sinceMs = atMs;
    use.lastMs = atMs;
    if (use.isTold || atMs - use.sinceMs < hourMs) return;
    use.isTold = true;
    onLongUse?.({ ...about, sinceMs: use.sinceMs });
  }
}

/** After a pause of this length, the use of a secret begins again. */
const pauseMinutes = 15;
