import { expect, it } from 'vitest';
import type { QuotaCall } from '../../../gateway/quota/decide-key.ts';
import { emptyQuotaState } from '../../../gateway/quota/hash.ts';
import { createKeyLedger, type KeyLedger } from '../../../gateway/request/limit/key-ledger.ts';
import { calendarWindowsMs } from '../../../gateway/shared/calendar-windows.ts';
import { defaultBounds } from '../../../gateway/shared/timeouts-and-sizes.ts';
import { limitsOf } from '../../support/limits-of.ts';
import { oneRun } from '../../support/one-run.ts';

const few = { ...defaultBounds, rememberedKeysMax: 100 };
const nowMs = 1_000_000;
const bans = { after: 1_000, withinMs: 60_000, forMs: 60_000, maxMs: 600_000 };
const callOf = (keyId: string): QuotaCall => ({
  ...{ keyId, limits: limitsOf({ perMinute: 1, perDay: 1 }), bans },
  runs: oneRun(1),
});

/** Returns the call that is sent to the store. */
function sent(ledger: KeyLedger, call: QuotaCall): QuotaCall {
  return { ...call, unsent: ledger.takeUnsent(call) };
}

function refuse(ledger: KeyLedger, call: QuotaCall, atMs: number, units = 1) {
  return ledger.refuse(call, { requests: 1, units }, atMs);
}

/** The store's reply for a key with an exhausted minute window and the given number of strikes. */
function reply(strikes: number) {
  const state = {
    ...emptyQuotaState,
    minute: Math.floor(nowMs / calendarWindowsMs.minute),
    minuteUsed: 1,
    strikes,
    strikesFromMs: strikes === 0 ? 0 : nowMs,
  };
  return { nowMs, admitted: 0, refused: 0, banned: 0, crowded: 0, admittedOf: [0], state };
}

it('strikes in an unanswered call count once, even if other keys push the key out of the ledger', () => {
  const ledger = createKeyLedger(few);
  const call = callOf('acme');
  ledger.settle(sent(ledger, call), reply(0));
  for (let strike = 0; strike < 5; strike++) expect(refuse(ledger, call, nowMs)?.refused).toBe(1);
  const last = sent(ledger, call);
  expect(last.unsent?.strikes).toBe(5);

  for (let index = 0; index < few.rememberedKeysMax; index++) sent(ledger, callOf(`other-${index}`));
  ledger.settle(last, reply(6));
  expect(ledger.lastSeen(call, nowMs).strikes).toBe(6);
});

it('a report does not prolong the time in which a request is refused without the store', () => {
  const ledger = createKeyLedger(few);
  const call = callOf('acme');
  ledger.settle(sent(ledger, call), reply(0));
  const laterMs = nowMs + few.refusalRememberedMs - 1;
  expect(refuse(ledger, call, laterMs)?.refused).toBe(1);
  const [report] = ledger.openReports(1);
  if (report === undefined) throw new Error('a refusal waits for a report');
  ledger.settle(report, { ...reply(1), nowMs: laterMs });
  expect(refuse(ledger, call, laterMs)?.refused).toBe(1);
  expect(refuse(ledger, call, laterMs + 1)).toBeUndefined();
});

it('decisions without the store are sent in units', () => {
  const ledger = createKeyLedger(few);
  const call = { ...callOf('acme'), limits: limitsOf({ perMinute: 12, perDay: 100 }) };
  expect(ledger.decideAlone({ ...call, runs: oneRun(3, 5) }, nowMs, false).admitted).toBe(2);
  expect(ledger.decideAlone({ ...call, runs: oneRun(3, 1) }, nowMs, false).admitted).toBe(2);
  expect(ledger.decideAlone({ ...call, runs: oneRun(3, 0) }, nowMs, false).admitted).toBe(3);
  const [report] = ledger.openReports(1);
  expect(report).toMatchObject({ runs: [], unsent: { minuteUsed: 12, dayUsed: 12, strikes: 2 } });
});

it('a request is refused without the store only if its units do not fit', () => {
  const ledger = createKeyLedger(few);
  const call = { ...callOf('acme'), limits: limitsOf({ perMinute: 3, perDay: 100 }) };
  ledger.settle(sent(ledger, call), reply(0));
  expect(refuse(ledger, call, nowMs, 3)?.refused).toBe(1);
  expect([0, 1, 2].map((units) => refuse(ledger, call, nowMs, units))).toEqual(Array(3).fill(undefined));
});

it('a refusal is kept until a grant begins, to the millisecond', () => {
  const ledger = createKeyLedger(few);
  const call = callOf('acme');
  const spent = reply(0);
  const [fromMs, untilMs] = [nowMs + 10, nowMs + 20];
  const grant = { limits: limitsOf({ perMinute: 5, perDay: 5 }), fromMs, untilMs };
  ledger.settle(sent(ledger, call), { ...spent, state: { ...spent.state, grant } });
  expect(refuse(ledger, call, fromMs - 1)?.refused).toBe(1);
  expect(refuse(ledger, call, fromMs)).toBeUndefined();
  expect(ledger.decideAlone({ ...call, runs: oneRun(9, 1) }, fromMs, false).admitted).toBe(4);
});

it('a key is refused without the store only if the trial refuses the request too', () => {
  const ledger = createKeyLedger(few);
  const tried = { ...callOf('acme'), trial: limitsOf({ perMinute: 9, perDay: 9 }) };
  const trial = { ...emptyQuotaState, windows: 0b1010, minute: Math.floor(nowMs / calendarWindowsMs.minute) };
  const { state, ...rest } = reply(0);
  const banned = { ...state, bannedUntilMs: nowMs + 60_000, banLevel: 1, trial };
  ledger.settle(sent(ledger, tried), { ...rest, state: banned });
  expect(refuse(ledger, tried, nowMs)).toBeUndefined();
  // Another process may have banned the key in the trial.
  expect(refuse(ledger, tried, nowMs, 0)).toBeUndefined();
  const trialIsBanned = { ...banned, trial: { ...trial, bannedUntilMs: nowMs + 50_000 } };
  ledger.settle(sent(ledger, tried), { ...rest, state: trialIsBanned });
  expect(refuse(ledger, tried, nowMs)).toMatchObject({ banned: 1, trial: { banned: 1 } });
});

it('after an edit of the limits or of the trial, the store decides before the process refuses', () => {
  const ledger = createKeyLedger(few);
  const call = callOf('acme');
  ledger.settle(sent(ledger, call), reply(0));
  const edited = [
    { ...call, trial: limitsOf({ perMinute: 1, perDay: 1 }) },
    { ...call, limits: limitsOf({ perMinute: 1, perMonth: 1 }) },
  ];
  for (const other of edited) expect(refuse(ledger, other, nowMs)).toBeUndefined();
  expect(refuse(ledger, call, nowMs)?.refused).toBe(1);
});
