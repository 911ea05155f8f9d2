import { expect, it } from 'vitest';
import {
  type Circumstance,
  explainDifference,
} from '../../../../gateway/capabilities/simulate/replay/explain-difference.ts';

const ms = (time: string) => Date.parse(`2026-11-22T${time}Z`);
const acme = { id: 'acme', plan: 'free' };
const outage: Circumstance[] = [
  { kind: 'store_away', atMs: ms('10:30:50'), text: 'Redis is away.' },
  { kind: 'store_back', atMs: ms('10:33:00'), text: 'Redis is back.' },
];
const grant = {
  kind: 'grant',
  atMs: ms('09:00:00'),
  text: 'given by ada.',
  concerns: ({ id }: { id: string }) => id === 'acme',
  untilMs: ms('12:00:00'),
} as const;
const edit = {
  kind: 'edit',
  atMs: ms('11:00:00'),
  text: 'free 60 → 50 a minute',
  concerns: ({ plan }: { plan: string | undefined }) => plan === 'free',
} as const;
const editWithin = { ...edit, atMs: ms('10:31:20') };
const editOfOthers = { ...edit, atMs: ms('10:31:10'), text: 'pro 9 → 8', concerns: () => false };
const start = { kind: 'start', atMs: ms('10:00:00'), text: 'process 7 was started.' } as const;

it.each<[string, Parameters<typeof explainDifference>[3], RegExp]>([
  [
    'limits that changed for a reason without an entry',
    { limitsChanged: true },
    /^The limits of the key changed within the minute or shortly before\.$/,
  ],
  [
    'changes that were not read',
    { changesReadSinceMs: ms('11:00:00') },
    /^Other limits or grants may have applied before 2026-11-22 11:00 UTC, because no earlier changes are read\.$/,
  ],
  ['no changes that were not read after it', { changesReadSinceMs: ms('10:31:00') }, /^No outage/],
])('a minute that differs is explained by %s', (_what, known, expected) => {
  expect(explainDifference('2026-11-22T10:31:00Z', [acme], [], known)).toMatch(expected);
});

it.each<[string, readonly Circumstance[], RegExp]>([
  [
    'an outage that spans the minute',
    outage,
    /^From 2026-\d\d-\d\d \d\d:\d\d UTC on, for 2 min 10 s: Redis is away\.$/,
  ],
  [
    'an edit within it, and by an outage during it, which may have changed little',
    [...outage, editWithin].sort((a, b) => a.atMs - b.atMs),
    /^An edit took effect within .*free 60 → 50.* UTC on, for 2 min 10 s: Redis is away\.$/,
  ],
  ['an outage that has not ended', outage.slice(0, 1), /^From .* UTC on: Redis is away/],
  [
    'an edit within it',
    [editWithin],
    /^An edit took effect within the minute or shortly before, at 2026-11-22 10:31 UTC: free 60 → 50/,
  ],
  [
    'an edit shortly before it',
    [{ ...edit, atMs: ms('10:30:59') }],
    /^An edit took effect within .*free 60 → 50/,
  ],
  ['no edit after it, because the replay uses the limits of its time', [edit], /^No outage, edit or grant/],
  [
    'an edit after it whose record leaves out limits',
    [{ ...edit, isCut: true }],
    /^An edit at 2026-11-22 11:00 UTC changed more limits than its record has/,
  ],
  ['no edit that concerns other keys', [editOfOthers], /^No outage, edit or grant is on record/],
  [
    'no edit that concerns other keys, earlier that day',
    [{ ...editOfOthers, atMs: ms('10:00:00') }],
    /^No outage, edit or grant is on record/,
  ],
  [
    'the edit of its keys, after an edit that concerns other keys',
    [editOfOthers, editWithin],
    /free 60 → 50/,
  ],
  [
    'a grant of the key that ends within it',
    [{ ...grant, untilMs: ms('10:31:30') }],
    /^A grant began or ended within the minute or shortly before: given by ada/,
  ],
  [
    'a grant of the key that begins within it, before an edit',
    [{ ...grant, atMs: ms('10:31:10') }, editWithin],
    /^A grant began or ended .*given by ada.*An edit/,
  ],
  ['no grant that was in force in the whole minute', [grant], /^No outage/],
  [
    'no grant of another key',
    [{ ...grant, untilMs: ms('10:31:30'), concerns: () => false }],
    /^No outage, edit or grant is on record/,
  ],
  ['no grant that had ended', [{ ...grant, untilMs: ms('10:00:00') }], /^No outage/],
  ['a start without Redis on the same day', [start], /^The counts started over: process 7/],
  ['no start of the day before', [{ ...start, atMs: ms('10:00:00') - 86_400_000 }], /^No outage/],
  [
    'an outage that was over, earlier that day',
    outage.map((one) => ({ ...one, atMs: one.atMs - 3_600_000 })),
    /^Earlier that day, /,
  ],
  [
    'a pause of the record',
    [{ kind: 'recording_paused', atMs: ms('10:20:00'), text: 'Redis is full.' }],
    /^From .* UTC on: Redis is full/,
  ],
])('a minute that differs is explained by %s', (_what, circumstances, expected) => {
  expect(explainDifference('2026-11-22T10:31:00Z', [acme], circumstances)).toMatch(expected);
});
