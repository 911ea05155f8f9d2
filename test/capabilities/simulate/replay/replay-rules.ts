import { type KeyVerdict, replayKey } from '../../../../gateway/capabilities/simulate/replay/replay-key.ts';
import { type KeyMinutes, offeredAt } from '../../../../gateway/usage/read/key-minutes.ts';
import { calendar, type TwinsRecorded } from './twin-keys.ts';

interface Replayed {
  readonly verdict: KeyVerdict;
  readonly differences: readonly number[];
  readonly admitted: readonly (readonly [minute: number, admitted: number])[];
  readonly refused: readonly (readonly [minute: number, refused: number])[];
}

export type Replay = (run: TwinsRecorded) => Replayed;

export const replay: Replay = ({ kept, limitSteps: steps, bans, fromMinute }) => {
  const differences: number[] = [];
  const admitted: [number, number][] = [];
  const refused: [number, number][] = [];
  const verdict = replayKey(
    { minutes: kept, fromMinute, steps, bans: { present: bans, edited: bans } },
    calendar,
    {
      onDifference: (minute) => differences.push(minute),
      onMinute: (minute, requests) => admitted.push([minute, requests]),
      onRefused: (minute, requests) => refused.push([minute, requests]),
    },
  );
  return { verdict, differences, admitted, refused };
};

/** The part of a key's usage record after the edit. */
export function recordedFrom(fromMinute: number, minutes: KeyMinutes) {
  const places = [...minutes.minute.keys()].filter((place) => (minutes.minute[place] ?? 0) >= fromMinute);
  const sum = (column: Exclude<keyof KeyMinutes, 'minute' | 'costs'>) =>
    places.reduce((all, place) => all + (minutes[column][place] ?? 0), 0);
  return {
    offered: new Map(places.map((place) => [minutes.minute[place] ?? 0, offeredAt(minutes, place)])),
    admitted: places.map((place) => [minutes.minute[place] ?? 0, minutes.admitted[place] ?? 0] as const),
    refusals: sum('refused') + sum('bySecond'),
    banned: sum('banned'),
    refused: sum('refused') + sum('bySecond') + sum('banned'),
  };
}

/** The invariants that the given replay violates. */
export function brokenRules(run: TwinsRecorded, simulate: Replay): string[] {
  const { verdict, differences, admitted, refused } = simulate(run);
  const { offered, refusedThen, refusedThenMin, refusedThenMax, firstRefusedMinute } = verdict;
  const [own, actual] = [
    recordedFrom(run.fromMinute, run.kept),
    recordedFrom(run.fromMinute, run.edited).refused,
  ];
  const unedited = run.limitSteps.map((step) => ({ ...step, edited: step.present }));
  const same = simulate({ ...run, after: run.before, limitSteps: unedited });
  const refusedIn = admitted.map(([minute, requests]) => (own.offered.get(minute) ?? 0) - requests);
  const first = admitted[refusedIn.findIndex((requests) => requests > 0)]?.[0] ?? Infinity;
  const rules = {
    'the limits of their time refuse what was recorded': differences.length === 0,
    'minutes add up to the total': refusedIn.reduce((sum, requests) => sum + requests, 0) === refusedThen,
    'no minute admits more than was offered': refusedIn.every((requests) => requests >= 0),
    'minutes with refusals are those that do not admit all requests':
      JSON.stringify(refused) ===
      JSON.stringify(
        admitted
          .map(([minute], place) => [minute, refusedIn[place]])
          .filter(([, requests]) => requests !== 0),
      ),
    'the first refusal is in the first minute that refuses': firstRefusedMinute === first,
    'the estimate is the middle of its bounds':
      refusedThen === Math.ceil((refusedThenMin + refusedThenMax) / 2) && refusedThenMax <= offered,
    'what the gateway did is between the bounds': refusedThenMin <= actual && actual <= refusedThenMax,
    'the limits that were in force change nothing':
      same.verdict.refusedThenMin === own.refused && same.verdict.refusedThenMax === own.refused,
    'the limits that were in force admit each minute what was recorded':
      JSON.stringify(same.admitted) === JSON.stringify(own.admitted),
  };
  return Object.entries(rules).flatMap(([rule, holds]) => (holds ? [] : [rule]));
}
