import { describe, expect, it } from 'vitest';
import { periodQuery, stepFor, untilInstant } from '../../../gateway/cli/admin/period.ts';

const nowMs = Date.parse('2026-11-22T10:31:07.250Z');

describe('--from and --to', () => {
  it.each([
    ['now', '2026-11-22T10:31:07.250Z'],
    ['today', '2026-11-22T00:00:00.000Z'],
    ['yesterday', '2026-11-21T00:00:00.000Z'],
    ['-7d', '2026-11-15T10:31:07.250Z'],
    ['-12h', '2026-11-21T22:31:07.250Z'],
    ['-30m', '2026-11-22T10:01:07.250Z'],
    ['2026-11-22', '2026-11-22'],
    ['2026-11-22T10:31+01:00', '2026-11-22T10:31+01:00'],
  ])('%s is %s', (text, instant) => {
    expect(periodQuery({ from: text, to: text }, nowMs)).toEqual({ from: instant, to: instant });
  });

  it.each(['', 'soon', '-7', '7d', '-7w', '2026-02-30', '2026-11-22T10:31', '2026-11-22 10:31'])(
    '%j is refused',
    (text) => {
      expect(() => periodQuery({ to: text }, nowMs)).toThrow(/^--to must be a date such as/);
    },
  );

  it('are left to the admin API where they are absent', () => {
    expect(periodQuery({}, nowMs)).toEqual({ from: undefined, to: undefined });
  });
});

describe('the step of usage', () => {
  it.each([
    [{}, 'minute'],
    [{ from: '-24h' }, 'minute'],
    [{ from: '-2d' }, 'hour'],
    [{ from: '-7d' }, 'hour'],
    [{ from: '-8d' }, 'day'],
    // Of so long ago only whole days are kept.
    [{ from: '2026-10-05', to: '2026-10-05' }, 'day'],
    [{ from: '2026-10-01', to: '2026-10-31' }, 'day'],
    [{ to: '2026-10-31' }, 'day'],
  ])('of %j is a %s', (options, step) => {
    expect(stepFor(periodQuery(options, nowMs), nowMs)).toBe(step);
  });
});

describe('--until', () => {
  it.each([
    ['tomorrow', '2026-11-23T00:00:00.000Z'],
    ['18:00', '2026-11-22T18:00:00.000Z'],
    ['10:31', '2026-11-23T10:31:00.000Z'],
    ['9:05', '2026-11-23T09:05:00.000Z'],
    ['+6h', '2026-11-22T16:31:07.250Z'],
    ['+30m', '2026-11-22T11:01:07.250Z'],
    ['+2d', '2026-11-24T10:31:07.250Z'],
    ['2026-12-01', '2026-12-01T00:00:00.000Z'],
    ['2026-12-01T00:00Z', '2026-12-01T00:00:00.000Z'],
    ['2026-11-22T12:00:00+01:00', '2026-11-22T11:00:00.000Z'],
  ])('%s is %s', (text, instant) => {
    expect(untilInstant(text, nowMs)).toBe(instant);
  });

  it.each(['', 'soon', '6h', '+6', '24:00', '18:60', '2026-02-30', '2026-12-01T18:00'])(
    '%j is refused',
    (text) => {
      expect(() => untilInstant(text, nowMs)).toThrow(/^--until must be a date such as/);
    },
  );

  it.each(['2026-11-22', '2026-11-22T10:31:07.250Z', '+0h'])('%s is in the past', (text) => {
    expect(() => untilInstant(text, nowMs)).toThrow(`--until ${text} is in the past.`);
  });
});
