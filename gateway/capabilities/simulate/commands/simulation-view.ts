import { emptyText } from '../../../admin/words/list.js';
import { instant } from '../../../cli/output/figures.ts';
import type { Screen } from '../../../cli/output/screen.ts';
import { type Column, table } from '../../../cli/output/table.ts';
import { wrapText } from '../../../shared/terminal/text-width.ts';
import { counted, figure } from '../../../shared/words/figures.js';
import { isUncertain, termsText, uncertainText } from '../words.js';
import type { Simulation } from './ask-simulation.ts';

const reasonsShown = 10;

/**
 * Makes the lines about a simulation: how many recorded refusals it reproduced, what would change, and the keys with the largest changes.
 */
export function simulationLines(found: Simulation, limit: number, screen: Screen): string[] {
  const { totals, keys, plans, activeKeys, notReplayed = [] } = found;
  const left = notReplayed.flatMap((group) => [
    ...wrapText(notReplayedText(group), screen.columns),
    ...(group.trial === undefined ? [] : [`  ${group.trial}`]),
  ]);
  const period = `${instant(found.from).slice(0, 16)} to ${instant(found.to).slice(0, 16)} UTC`;
  const { minutesSinceAt } = found;
  const since =
    minutesSinceAt && `The record of minutes begins at ${instant(minutesSinceAt).slice(0, 16)} UTC.`;
  if (totals.keys === 0) {
    const none = activeKeys === 0 ? 'No key with these limits' : 'None of these keys';
    const text = `${none} sent a request from ${period}, according to the usage record.`;
    const isBefore = minutesSinceAt !== undefined && minutesSinceAt > found.to;
    if (isBefore) return [`${since} Earlier requests cannot be replayed.`];
    return [emptyText(found, text), ...left];
  }
  const names = plans.map(({ name }) => name).join(', ');
  const lines = [
    ...proofLines(found, screen),
    `From ${period}, ${counted(totals.keys, 'key')} of ${plans.length === 1 ? 'the plan' : 'the plans'} ${names}:`,
    ...wrapText(sentence(found), screen.columns),
    ...(since ? [since] : []),
    ...(termsText(totals) !== '' ? wrapText(termsText(totals), screen.columns) : []),
  ];
  const { refusedThenMin: least, refusedThenMax: most } = totals;
  if (least < most) {
    const bounds = `Bans, limits per second${found.hasGroups ? ', mixed costs and groups' : ' and mixed costs'} depend on the order of requests within a minute, which is not on record: of all ${figure(totals.offered)} requests at least ${figure(least)} and at most ${figure(most)} would have been refused. The figures are the middle of both.`;
    lines.push(...wrapText(bounds, screen.columns));
  }
  lines.push(...left);
  if (keys.length === 0) return lines;
  const shown = keys.slice(0, limit);
  const more = keys.length - shown.length + found.moreKeys;
  lines.push('', ...table(columns, shown, screen));
  if (more > 0) lines.push(`and ${counted(more, 'key')} more: --limit N shows more keys`);
  return lines;
}

/** Makes the sentences about a group with requests that the simulation leaves out. The proposed trial is a line of its own. */
export function notReplayedText({
  why,
  requests,
}: Pick<NonNullable<Simulation['notReplayed']>[number], 'why' | 'requests'>): string {
  const known =
    requests === 0
      ? 'Its operations had no request in this period.'
      : `The simulation leaves out ${counted(requests, 'request')} of its operations, so the group would have refused at most this number of them.`;
  return `${why} ${known}`;
}

const columns: readonly Column<Simulation['keys'][number]>[] = [
  { title: 'KEY', cell: ({ id }) => id, cutsTo: 12 },
  { title: 'PLAN', cell: ({ plan }) => plan, cutsTo: 10 },
  { title: 'REQUESTS', cell: ({ offered }) => offered },
  { title: 'REFUSED NOW', cell: ({ refusedNow }) => refusedNow },
  {
    title: 'REFUSED THEN',
    align: 'right',
    cell: (key) => ({ text: thenText(key), tone: key.refusedThen > key.refusedNow ? 'bad' : 'good' }),
  },
  {
    title: 'SHARE',
    align: 'right',
    cell: ({ refusedThen, offered }) => `${((100 * refusedThen) / offered).toFixed(1)} %`,
  },
  {
    title: 'FIRST REFUSED (UTC)',
    cell: ({ firstRefusedAt }) => (firstRefusedAt === undefined ? '–' : instant(firstRefusedAt).slice(0, 16)),
  },
  { title: 'MINUTES WITH REFUSALS NOW', cell: ({ censoredMinutes }) => censoredMinutes },
];

/** Makes the sentence that compares the simulated refusals with the recorded refusals. */
export function sentence({ totals }: Pick<Simulation, 'totals'>): string {
  const { refusedNow, refusedThen, refusedThenMin, refusedThenMax, newlyLimitedKeys, freedKeys, offered } =
    totals;
  if (isUncertain(totals)) return `About ${uncertainText(totals)}`;
  const change = refusedThen - refusedNow;
  const share = `${((100 * Math.abs(change)) / offered).toFixed(1)} % of all`;
  const what =
    change === 0
      ? `The same number of requests would have been refused: ${figure(refusedNow)}.`
      : `${refusedThenMin < refusedThenMax ? 'About ' : ''}${counted(Math.abs(change), change > 0 ? 'more request' : 'fewer request')} would have been refused (${share}): ${figure(refusedThen)} instead of ${figure(refusedNow)}.`;
  const keys = [
    ...(newlyLimitedKeys > 0
      ? [`${counted(newlyLimitedKeys, 'key')} would have been refused for the first time`]
      : []),
    ...(freedKeys > 0 ? [`${counted(freedKeys, 'key')} would have had no refusal`] : []),
  ];
  return keys.length === 0 ? what : `${what} ${keys.join(', ')}.`;
}

function thenText({
  refusedThen,
  refusedThenMin = refusedThen,
  refusedThenMax = refusedThen,
}: Simulation['keys'][number]): string {
  if (refusedThenMin === refusedThenMax) return figure(refusedThen);
  return `${figure(refusedThen)} (${figure(refusedThenMin)}–${figure(refusedThenMax)})`;
}

/** Makes the sentence "Reproduced 41,203 of 41,203 refusals", and lists the reasons for minutes in which the replay differs. */
function proofLines({ reproduced }: Pick<Simulation, 'reproduced'>, screen: Screen): string[] {
  const { recordedRefusals, replayedRefusals, minutesThatDiffer, differences } = reproduced;
  const agreed = recordedRefusals - missed(reproduced);
  const proof = `The replay of the usage record under the limits of its time reproduced ${figure(agreed)} of ${counted(recordedRefusals, 'refusal by a limit', 'refusals by limits')}.`;
  if (minutesThatDiffer === 0) return [screen.paint('good', proof)];
  const byReason = [...Map.groupBy(differences, ({ why }) => why ?? '')];
  const listed = byReason.slice(0, reasonsShown);
  const rest = minutesThatDiffer - listed.reduce((sum, [, minutes]) => sum + minutes.length, 0);
  return [
    screen.paint('warning', proof),
    ...wrapText(
      `The replay has ${counted(replayedRefusals, 'refusal')} in all, and differs from the record in ${counted(minutesThatDiffer, 'minute')}. Therefore the figures at the end are an estimate:`,
      screen.columns,
    ),
    ...listed.flatMap(([why, minutes]) =>
      wrapText(`${differenceText(minutes)} ${why}`, screen.columns - 2).map((line) => `  ${line}`),
    ),
    ...(rest > 0 ? [`  and ${counted(rest, 'minute')} more`] : []),
  ];
}

/** Describes minutes that differ: "2026-11-22 10:31 to 10:45 (15 minutes) acme: recorded 3, replayed 4." */
function differenceText(minutes: Simulation['reproduced']['differences']): string {
  const [first, last] = [minutes[0], minutes.at(-1)].map((one) => instant(one?.at ?? '').slice(0, 16));
  const when = first === last ? first : `${first} to ${last} (${counted(minutes.length, 'minute')})`;
  const ids = [...new Set(minutes.flatMap(({ of }) => of))];
  const who = ids.length === 1 ? ids[0] : 'several keys';
  const [recorded, replayed] = (['recordedRefusals', 'replayedRefusals'] as const).map((name) =>
    figure(minutes.reduce((sum, one) => sum + one[name], 0)),
  );
  return `${when} ${who}: recorded ${recorded}, replayed ${replayed}.`;
}

/** Counts recorded refusals that the replay did not reproduce. Only the listed minutes are counted. */
function missed({ differences }: Simulation['reproduced']): number {
  return differences.reduce((sum, one) => sum + Math.max(0, one.recordedRefusals - one.replayedRefusals), 0);
}
