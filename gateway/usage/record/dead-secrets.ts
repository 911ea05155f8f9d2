import type { Bounds } from '../../shared/timeouts-and-sizes.ts';
import { deadBitNumber, deadField, refusedNumber, unknownSecrets } from '../record-fields.ts';
import { latest } from '../store/counts.ts';
import type { UnsentCounts } from '../unsent-counts.ts';
import { hourOfDay, type UsageCalendar } from '../usage-calendar.ts';
import { addressBit, deadAddressBits } from './address-estimate.ts';
import { NamesOfDay, others } from './key-usage.ts';

/** A presented secret that is not valid, and the address of the client. */
export interface DeadSecretUse {
  /** Undefined if the secret belongs to no key. */
  readonly keyId?: string | undefined;
  readonly digestStart: string;
  readonly address: string;
}

/** Makes the function that counts requests with secrets that are not valid, for all keys together. */
export function countDeadSecrets({
  calendar: { hourMs, dayMs },
  unsent,
  bounds,
}: {
  readonly calendar: UsageCalendar;
  readonly unsent: UnsentCounts;
  readonly bounds: Pick<Bounds, 'usageDeadSecretsMax'>;
}) {
  const names = new NamesOfDay();
  return (atMs: number, { keyId, digestStart, address }: DeadSecretUse): void => {
    const day = Math.floor(atMs / dayMs);
    const name = keyId === undefined ? unknownSecrets : `${digestStart}:${keyId}`;
    const isNamed = keyId === undefined || names.add(name, day, bounds.usageDeadSecretsMax);
    const field = deadField(isNamed ? name : others);
    if (!unsent.add(day, field, refusedNumber(hourOfDay(Math.floor(atMs / hourMs))), 1)) return;
    unsent.add(day, field, latest, atMs - day * dayMs);
    unsent.add(day, field, deadBitNumber(addressBit(address) % deadAddressBits), 1);
  };
}
