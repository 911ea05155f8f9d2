import { expect, it } from 'vitest';
import { createKeyLedger, type KeyTerms } from '../../../gateway/request/limit/key-ledger.ts';
import { emptyQuotaState } from '../../../gateway/request/limit/store/decide-quota.ts';
import { calendarWindowsMs } from '../../../gateway/shared/calendar-windows.ts';
import { defaultBounds } from '../../../gateway/shared/timeouts-and-sizes.ts';
import { limitsOf } from '../../support/limits-of.ts';

const few = { ...defaultBounds, rememberedKeysMax: 100 };
const nowMs = 1_000_000;
const bans = { after: 1_000, withinMs: 60_000, forMs: 60_000, maxMs: 600_000 };
const termsOf = (keyId: string): KeyTerms => ({ keyId, limits: limitsOf({ perMinute: 1, perDay: 1 }), bans });

/** The store's reply to a call of a key whose minute is spent and that has this many strikes. */
function reply(strikes: number) {
  const state = {
    ...emptyQuotaState,
    minute: Math.floor(nowMs / calendarWindowsMs.minute),
    minuteUsed: 1,
    strikes,
    strikesFromMs: strikes === 0 ? 0 : nowMs,
  };
  return { nowMs, admitted: 0, refused: 0, banned: 0, state };
}

it('strikes in an open call are counted once, even if other keys push the key out of the ledger meanwhile', () => {
  const ledger = createKeyLedger(few);
  const terms = termsOf('acme');
  ledger.settle(ledger.openCall(terms, 1), reply(0));
  for (let strike = 0; strike < 5; strike++) expect(ledger.refuse(terms, nowMs)?.refused).toBe(1);
  const call = ledger.openCall(terms, 1);
  expect(call.unsent?.strikes).toBe(5);

  for (let index = 0; index < few.rememberedKeysMax; index++) ledger.openCall(termsOf(`other-${index}`), 1);
  ledger.settle(call, reply(6));
  expect(ledger.lastSeen(terms, nowMs).strikes).toBe(6);
});

it('a refusal is remembered until a grant begins, and not a millisecond longer', () => {
  const ledger = createKeyLedger(few);
  const terms = termsOf('acme');
  const spent = reply(0);
  const [fromMs, untilMs] = [nowMs + 10, nowMs + 20];
  const grant = { limits: limitsOf({ perMinute: 5, perDay: 5 }), fromMs, untilMs };
  ledger.settle(ledger.openCall(terms, 1), { ...spent, state: { ...spent.state, grant } });
  expect(ledger.refuse(terms, fromMs - 1)?.refused).toBe(1);
  expect(ledger.refuse(terms, fromMs)).toBeUndefined();
  expect(ledger.decideAlone(terms, 9, fromMs, false).admitted).toBe(4);
});
