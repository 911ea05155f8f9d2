import { expect, it } from 'vitest';
import { emptyQuotaState } from '../../../gateway/quota/hash.ts';
import { createKeyLedger, type KeyTerms } from '../../../gateway/request/limit/key-ledger.ts';
import { calendarWindowsMs } from '../../../gateway/shared/calendar-windows.ts';
import { defaultBounds } from '../../../gateway/shared/timeouts-and-sizes.ts';
import { limitsOf } from '../../support/limits-of.ts';

const few = { ...defaultBounds, rememberedKeysMax: 100 };
const nowMs = 1_000_000;
const bans = { after: 1_000, withinMs: 60_000, forMs: 60_000, maxMs: 600_000 };
const one = { requests: 1, units: 1 };
const termsOf = (keyId: string): KeyTerms => ({ keyId, limits: limitsOf({ perMinute: 1, perDay: 1 }), bans });

/** The store's reply for a key with an exhausted minute window and the given number of strikes. */
function reply(strikes: number) {
  const state = {
    ...emptyQuotaState,
    minute: Math.floor(nowMs / calendarWindowsMs.minute),
    minuteUsed: 1,
    strikes,
    strikesFromMs: strikes === 0 ? 0 : nowMs,
  };
  return { nowMs, admitted: 0, refused: 0, banned: 0, crowded: 0, state };
}

it('strikes in an unanswered call count once, even if other keys push the key out of the ledger', () => {
  const ledger = createKeyLedger(few);
  const terms = termsOf('acme');
  ledger.settle(ledger.openCall(terms, one), reply(0));
  for (let strike = 0; strike < 5; strike++)
    expect(ledger.refuse(terms, { units: 1 }, nowMs)?.refused).toBe(1);
  const call = ledger.openCall(terms, one);
  expect(call.unsent?.strikes).toBe(5);

  for (let index = 0; index < few.rememberedKeysMax; index++) ledger.openCall(termsOf(`other-${index}`), one);
  ledger.settle(call, reply(6));
  expect(ledger.lastSeen(terms, nowMs).strikes).toBe(6);
});

it('a report does not prolong the time in which a request is refused without the store', () => {
  const ledger = createKeyLedger(few);
  const terms = termsOf('acme');
  ledger.settle(ledger.openCall(terms, one), reply(0));
  const laterMs = nowMs + few.refusalRememberedMs - 1;
  expect(ledger.refuse(terms, { units: 1 }, laterMs)?.refused).toBe(1);
  const [report] = ledger.openReports(1);
  if (report === undefined) throw new Error('a refusal waits for a report');
  ledger.settle(report, { ...reply(1), nowMs: laterMs });
  expect(ledger.refuse(terms, { units: 1 }, laterMs)?.refused).toBe(1);
  expect(ledger.refuse(terms, { units: 1 }, laterMs + 1)).toBeUndefined();
});

it('decisions without the store are sent in units', () => {
  const ledger = createKeyLedger(few);
  const terms = { ...termsOf('acme'), limits: limitsOf({ perMinute: 12, perDay: 100 }) };
  expect(ledger.decideAlone(terms, { requests: 3, units: 5 }, nowMs, false).admitted).toBe(2);
  expect(ledger.decideAlone(terms, { requests: 3, units: 1 }, nowMs, false).admitted).toBe(2);
  expect(ledger.decideAlone(terms, { requests: 3, units: 0 }, nowMs, false).admitted).toBe(3);
  const [report] = ledger.openReports(1);
  expect(report).toMatchObject({ requests: 0, unsent: { minuteUsed: 12, dayUsed: 12, strikes: 2 } });
});

it('a request is refused without the store only if its units do not fit', () => {
  const ledger = createKeyLedger(few);
  const terms = { ...termsOf('acme'), limits: limitsOf({ perMinute: 3, perDay: 100 }) };
  ledger.settle(ledger.openCall(terms, one), reply(0));
  expect(ledger.refuse(terms, { units: 3 }, nowMs)?.refused).toBe(1);
  expect([0, 1, 2].map((units) => ledger.refuse(terms, { units }, nowMs))).toEqual(Array(3).fill(undefined));
});

it('a refusal is kept until a grant begins, to the millisecond', () => {
  const ledger = createKeyLedger(few);
  const terms = termsOf('acme');
  const spent = reply(0);
  const [fromMs, untilMs] = [nowMs + 10, nowMs + 20];
  const grant = { limits: limitsOf({ perMinute: 5, perDay: 5 }), fromMs, untilMs };
  ledger.settle(ledger.openCall(terms, one), { ...spent, state: { ...spent.state, grant } });
  expect(ledger.refuse(terms, { units: 1 }, fromMs - 1)?.refused).toBe(1);
  expect(ledger.refuse(terms, { units: 1 }, fromMs)).toBeUndefined();
  expect(ledger.decideAlone(terms, { requests: 9, units: 1 }, fromMs, false).admitted).toBe(4);
});

it('a key is refused without the store only if the trial refuses the request too', () => {
  const ledger = createKeyLedger(few);
  const tried = { ...termsOf('acme'), trial: limitsOf({ perMinute: 9, perDay: 9 }) };
  const trial = { ...emptyQuotaState, windows: 0b1010, minute: Math.floor(nowMs / calendarWindowsMs.minute) };
  const { state, ...rest } = reply(0);
  const banned = { ...state, bannedUntilMs: nowMs + 60_000, banLevel: 1, trial };
  ledger.settle(ledger.openCall(tried, one), { ...rest, state: banned });
  expect(ledger.refuse(tried, { units: 1 }, nowMs)).toBeUndefined();
  // Another process may have banned the key in the trial.
  expect(ledger.refuse(tried, { units: 0 }, nowMs)).toBeUndefined();
  const trialIsBanned = { ...banned, trial: { ...trial, bannedUntilMs: nowMs + 50_000 } };
  ledger.settle(ledger.openCall(tried, one), { ...rest, state: trialIsBanned });
  expect(ledger.refuse(tried, { units: 1 }, nowMs)).toMatchObject({ banned: 1, trial: { banned: 1 } });
});

it('after an edit of the limits or of the trial, the store decides before the process refuses', () => {
  const ledger = createKeyLedger(few);
  const terms = termsOf('acme');
  ledger.settle(ledger.openCall(terms, one), reply(0));
  const edited = [
    { ...terms, trial: limitsOf({ perMinute: 1, perDay: 1 }) },
    { ...terms, limits: limitsOf({ perMinute: 1, perMonth: 1 }) },
  ];
  for (const other of edited) expect(ledger.refuse(other, { units: 1 }, nowMs)).toBeUndefined();
  expect(ledger.refuse(terms, { units: 1 }, nowMs)?.refused).toBe(1);
});
