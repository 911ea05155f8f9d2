import { describe, expect, it } from 'vitest';
import { grantText } from '../../../gateway/cli/admin/keys-view.ts';
import {
  grantPeriod,
  minuteAt,
  periodQuery,
  shiftOf,
  stepFor,
  yearBefore,
} from '../../../gateway/cli/admin/period.ts';

const nowMs = Date.parse('2026-11-22T10:31:07.250Z');

describe('--from and --to', () => {
  it.each([
    ['now', '2026-11-22T10:31:07.250Z'],
    ['-7d', '2026-11-15T10:31:07.250Z'],
    ['-12h', '2026-11-21T22:31:07.250Z'],
    ['-30m', '2026-11-22T10:01:07.250Z'],
    ['-12mo', '2025-11-22T10:31:07.250Z'],
    ['2026-11-22T10:31+01:00', '2026-11-22T10:31+01:00'],
    ['06:20', '2026-11-22T06:20:00.000Z'],
    ['10:31:07', '2026-11-22T10:31:07.000Z'],
    ['10:32', '2026-11-21T10:32:00.000Z'],
    ['2026-11-20 6:20', '2026-11-20T06:20:00.000Z'],
    ['yesterday 06:20', '2026-11-21T06:20:00.000Z'],
  ])('%s is %s', (text, instant) => {
    expect(periodQuery({ from: text, to: text }, nowMs)).toEqual({ from: instant, to: instant });
  });

  it.each([
    ['today', '2026-11-22', '2026-11-22T10:31:07.250Z'],
    ['2026-11-22', '2026-11-22', '2026-11-22T10:31:07.250Z'],
    ['yesterday', '2026-11-21', '2026-11-21T23:59:59.999Z'],
    ['2026-10-05', '2026-10-05', '2026-10-05T23:59:59.999Z'],
    ['2026-12-05', '2026-12-05', '2026-12-05T23:59:59.999Z'],
  ])('%s includes the whole day', (text, from, to) => {
    expect(periodQuery({ from: text, to: text }, nowMs)).toEqual({ from, to });
  });

  it.each(['', 'soon', '-7', '7d', '-7w', '2026-02-30', '2026-02-30 10:31', '25:00', '6:2'])(
    '%j is refused',
    (text) => {
      expect(() => periodQuery({ to: text }, nowMs)).toThrow(/^--to must be a date such as/);
    },
  );

  it('are chosen by the admin API when they are absent', () => {
    expect(periodQuery({}, nowMs)).toEqual({ from: undefined, to: undefined });
  });
});

describe('the step of usage', () => {
  it.each([
    [{}, 'hour'],
    [{ from: '-3h' }, 'minute'],
    [{ from: '-24h' }, 'hour'],
    [{ from: '-2d' }, 'hour'],
    [{ from: '-7d' }, 'hour'],
    [{ from: '-8d' }, 'day'],
    // The same day a week ago.
    [{ from: '-8d', to: '-7d' }, 'hour'],
    [{ from: '-9d', to: '-8d' }, 'day'],
    // The record contains only daily totals for days that are long past.
    [{ from: '2026-10-05', to: '2026-10-05' }, 'day'],
    [{ from: '2026-10-01', to: '2026-10-31' }, 'day'],
    [{ to: '2026-10-31' }, 'day'],
  ])('for %j is a %s', (options, step) => {
    expect(stepFor(periodQuery(options, nowMs), nowMs)).toBe(step);
  });
});

describe('--compare', () => {
  it.each([
    ['-7d', 'minute', '2026-11-15T10:31:07.250Z'],
    ['-12h', 'hour', '2026-11-21T22:31:07.250Z'],
    ['-28d', 'day', '2026-10-25T10:31:07.250Z'],
    ['-12mo', 'month', '2025-11-22T10:31:07.250Z'],
  ] as const)('%s by %s moves a period, and back', (text, step, to) => {
    const shift = shiftOf(text);
    shift.checkStep(step);
    const before = shift.periodBefore({ from: '2026-11-22', to: undefined }, nowMs);
    expect(before.to).toBe(to);
    expect(shift.later(Date.parse(before.from))).toBe(Date.parse('2026-11-22T00:00Z'));
  });

  it.each([
    ['-7d', '2026-11-16T00:00:00.000Z', 'day'],
    ['-24h', '2026-11-21T11:00:00.000Z', 'hour'],
    ['-30m', '2026-11-22T10:02:00.000Z', 'minute'],
  ] as const)('%s compares as many rows with the rows before if no period is given', (text, from, step) => {
    const shift = shiftOf(text);
    const period = periodQuery({}, nowMs, shift);
    expect(period).toEqual({ from, to: undefined });
    expect(stepFor(shift.periodBefore(period, nowMs), nowMs)).toBe(step);
  });

  it('moves the 24 hours before an end without a beginning', () => {
    const period = periodQuery({ to: '2026-11-22T10:31:07.250Z' }, nowMs, shiftOf('-7d'));
    expect(shiftOf('-7d').periodBefore(period, nowMs).from).toBe('2026-11-14T10:32:00.000Z');
  });

  it('of the last day of a month stays in the earlier month', () => {
    const march = { from: '2027-03-01', to: '2027-03-31T12:00:00Z' };
    expect(shiftOf('-1mo').periodBefore(march, nowMs)).toEqual({
      from: '2027-02-01T00:00:00.000Z',
      to: '2027-02-28T12:00:00.000Z',
    });
  });

  it.each([
    ['7d', 'day', /^--compare must be a length of time/],
    ['-0d', 'day', /^--compare must be a length of time/],
    ['last week', 'day', /^--compare must be a length of time/],
    ['-12h', 'day', /does not fit rows of one day/],
    ['-90m', 'hour', /does not fit rows of one hour/],
    ['-1mo', 'day', /needs --step month/],
    ['-28d', 'month', /does not fit rows of a month/],
  ] as const)('%s by %s is refused', (text, step, message) => {
    expect(() => shiftOf(text).checkStep(step)).toThrow(message);
  });

  it('the last 12 months begin with the first day of a month', () => {
    expect(yearBefore(nowMs)).toBe('2025-12-01');
    expect(yearBefore(Date.parse('2026-01-31T23:59:59Z'))).toBe('2025-02-01');
  });
});

describe('--at', () => {
  it.each([
    ['10:31', '2026-11-22T10:31:00.000Z'],
    ['9:05', '2026-11-22T09:05:00.000Z'],
    ['10:31:07', '2026-11-22T10:31:07.000Z'],
    ['10:30 UTC', '2026-11-22T10:30:00.000Z'],
    // A time that has not come yet today is the time of yesterday.
    ['10:32', '2026-11-21T10:32:00.000Z'],
    ['23:59', '2026-11-21T23:59:00.000Z'],
    ['today 10:31', '2026-11-22T10:31:00.000Z'],
    ['yesterday 10:31', '2026-11-21T10:31:00.000Z'],
    ['2026-11-20 14:03', '2026-11-20T14:03:00.000Z'],
    ['2026-11-20T14:03', '2026-11-20T14:03:00.000Z'],
    ['2026-11-20T14:03Z', '2026-11-20T14:03:00.000Z'],
    ['2026-11-20T14:03:59.5+01:00', '2026-11-20T13:03:59.500Z'],
  ])('%s is %s', (text, instant) => {
    expect(minuteAt(text, nowMs)).toBe(instant);
  });

  it.each([
    ['', /^--at must be a time such as 14:03 .*; "" is not such a time\.$/],
    ['14', /; "14" is not such a time\.$/],
    ['soon', /; "soon" is not such a time\.$/],
    ['2026-11-20', /; "2026-11-20" is not such a time\.$/],
    ['25:03', /^--at 25:03: there is no such time\. --at must be a time such as 14:03/],
    ['14:60', /^--at 14:60: there is no such time\./],
    ['2026-02-30 14:03', /^--at 2026-02-30 14:03: there is no such time\./],
    ['2026-11-20T14:03+1', /^--at 2026-11-20T14:03\+1: there is no such time\./],
    ['2026-11-22 10:32', /^--at 2026-11-22 10:32 is in the future: it is 10:31 UTC now\.$/],
    ['today 10:32', /^--at today 10:32 is in the future/],
  ])('%j is refused', (text, message) => {
    expect(() => minuteAt(text, nowMs)).toThrow(message);
  });
});

describe('the period of a grant', () => {
  it.each([
    ['today', '2026-11-22T00:00:00.000Z', '2026-11-23T00:00:00.000Z'],
    ['tomorrow', '2026-11-23T00:00:00.000Z', '2026-11-24T00:00:00.000Z'],
    ['2026-12-01', '2026-12-01T00:00:00.000Z', '2026-12-02T00:00:00.000Z'],
    ['18:00', '2026-11-22T18:00:00.000Z', '2026-11-22T18:00:00.000Z'],
    ['10:31', '2026-11-23T10:31:00.000Z', '2026-11-23T10:31:00.000Z'],
    ['9:05', '2026-11-23T09:05:00.000Z', '2026-11-23T09:05:00.000Z'],
    ['+6h', '2026-11-22T16:31:07.250Z', '2026-11-22T16:31:07.250Z'],
    ['+30m', '2026-11-22T11:01:07.250Z', '2026-11-22T11:01:07.250Z'],
    ['+30s', '2026-11-22T10:31:37.250Z', '2026-11-22T10:31:37.250Z'],
    ['+2d', '2026-11-24T10:31:07.250Z', '2026-11-24T10:31:07.250Z'],
    ['2026-12-01T00:00Z', '2026-12-01T00:00:00.000Z', '2026-12-01T00:00:00.000Z'],
    ['2026-11-22T12:00:00+01:00', '2026-11-22T11:00:00.000Z', '2026-11-22T11:00:00.000Z'],
  ])('from %s begins at %s, and until it ends at %s', (text, fromAt, untilAt) => {
    expect(grantPeriod({ from: text, until: '2026-12-31' }, nowMs)).toMatchObject({ fromAt });
    expect(grantPeriod({ until: text }, nowMs)).toEqual({ untilAt });
  });

  it.each([
    ['tomorrow', '+6h', '2026-11-23T06:00:00.000Z'],
    ['18:00', '6:00', '2026-11-23T06:00:00.000Z'],
    ['2026-12-01', '2026-12-01', '2026-12-02T00:00:00.000Z'],
    ['today', '+6h', '2026-11-22T16:31:07.250Z'],
  ])('from %s until %s ends at %s', (from, until, untilAt) => {
    expect(grantPeriod({ from, until }, nowMs).untilAt).toBe(untilAt);
  });

  it.each(['', 'soon', '6h', '+6', '24:00', '18:60', '2026-02-30', '2026-12-01T18:00'])(
    '%j is refused',
    (text) => {
      expect(() => grantPeriod({ until: text }, nowMs)).toThrow(/^--until must be a date such as/);
      expect(() => grantPeriod({ from: text, until: '+1h' }, nowMs)).toThrow(/^--from must be a date such/);
    },
  );

  it.each(['2026-11-21', '2026-11-22T10:31:07.250Z', '+0h', 'now'])('until %s is in the past', (text) => {
    expect(() => grantPeriod({ until: text }, nowMs)).toThrow(`--until ${text} is in the past.`);
  });

  it('ends after its beginning', () => {
    const backwards = { from: 'tomorrow', until: 'today' };
    expect(() => grantPeriod(backwards, nowMs)).toThrow('--until today is not later than --from tomorrow.');
  });

  it.each([
    [{ untilMs: Date.parse('2026-11-24') }, 'until 2026-11-23 24:00 UTC, in 1 day 13 hours'],
    [{ untilMs: nowMs + 6 * 3_600_000 - 40 }, 'until 2026-11-22 16:31:07 UTC, in 6 hours'],
    [{ untilMs: Date.parse('2026-11-22T10:40Z') }, 'until 2026-11-22 10:40 UTC, in 8 minutes 53 seconds'],
    [
      { fromMs: Date.parse('2026-11-24'), untilMs: Date.parse('2026-11-25') },
      'from 2026-11-24 00:00 UTC, in 1 day 13 hours, until 2026-11-24 24:00 UTC, for 1 day',
    ],
  ])('%j is shown as %s', (period, text) => {
    expect(grantText({ limits: { perDay: 5_000 }, ...period }, nowMs)).toBe(`5,000 a day ${text}`);
  });
});
