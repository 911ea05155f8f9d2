import { type LimitsByField, toLimits } from '../../../keys/limits/limit-fields.ts';
import { limitsText } from '../../../keys/limits/limit-texts.ts';
import { parseDate, parseDuration } from '../../../shared/schema/dates-and-durations.ts';
import { printable } from '../../../shared/terminal/printable.ts';
import { exemptionWords } from '../../../shared/words/exemptions.js';
import { beginning, ending, minuteMs } from '../../../shared/words/figures.js';
import type { KeyEdit } from '../file/writable-keys.ts';

// What a change of many keys makes of each key, in words.

/** "90 a minute until 2026-11-29 24:00 UTC". @param grant the body of the request */
export function grantTerms(grant: {
  readonly limits?: LimitsByField | undefined;
  readonly fromAt?: string | undefined;
  readonly untilAt: string;
}): string {
  const { limits = {}, fromAt, untilAt } = grant;
  const what = [limitsText(toLimits(limits)), ...exemptionWords(grant)].filter((one) => one !== '');
  const from = fromAt === undefined ? '' : ` from ${beginning(Date.parse(fromAt))}`;
  return `${what.join(', ')}${from} until ${ending(Date.parse(untilAt))}`;
}

/** "until 2026-11-29 13:20 UTC". */
export function banTerms({ untilAt }: { readonly untilAt: string }): string {
  return `until ${ending(Date.parse(untilAt))}`;
}

/** The end of the older secrets counts from the change of each key. @param overlap such as `24h` */
export function rotationTerms(overlap: string, expires: string | undefined, nowMs: number): string {
  const lengthMs = parseDuration(overlap);
  const endMs = Math.floor((nowMs + lengthMs) / minuteMs) * minuteMs;
  const older = lengthMs === 0 ? 'at once' : `about ${ending(endMs)}, or earlier if they expire earlier`;
  const own = expires === undefined ? '' : `; the new secrets expire ${dateInWords(expires)}`;
  return `their older secrets end ${older}${own}`;
}

/** "plan pro from 2027-01-01 00:00 UTC, no name". */
export function editTerms({ plan, limits, name, addresses, expiresAt, later, withdraw }: KeyEdit): string {
  const own = (stated: LimitsByField | null | undefined) =>
    stated ? limitsText(toLimits(stated)) : undefined;
  const planned = later && [`plan ${later.plan}`, own(later.limits)].filter(Boolean).join(' with ');
  const parts = [
    plan && `plan ${plan}`,
    own(limits),
    later && `${planned} from ${dateInWords(later.from)}`,
    typeof withdraw === 'string' && `no change of the plan at ${dateInWords(withdraw)}`,
    withdraw === true && (later ? 'no other change of the plan' : 'no later change of the plan'),
    name !== undefined && (name === null ? 'no name' : `name ${name}`),
    addresses !== undefined &&
      (addresses === null ? 'every client address' : `only the client addresses ${addresses.join(', ')}`),
    expiresAt !== undefined &&
      `the newest secret expires ${expiresAt === null ? 'never' : dateInWords(expiresAt)}`,
  ];
  return printable(parts.filter(Boolean).join(', '));
}

function dateInWords(written: string): string {
  const atMs = parseDate(written);
  return atMs === undefined ? written : beginning(atMs);
}
