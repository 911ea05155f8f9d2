import { instantText } from '../../fleet/wording.ts';
import { counted } from '../../shared/words/figures.js';
import type { KeyChangeKind } from '../interfaces/events.ts';

type Members = Readonly<Record<string, unknown>>;

/** The change of a run, for all keys that got units back. */
export const makegoodChanges = {
  makegood: {
    text: ({ by, after }, nowMs) =>
      `${by} gave ${givenText(after)} for requests that failed${instantText('from', after?.from, nowMs)}${instantText('to', after?.to, nowMs)}${filterText(after)}.`,
  },
} satisfies Readonly<Record<string, KeyChangeKind>>;

/** Formats the result of a makegood: "2 keys back 120 units of the day and 150 units of the month". */
function givenText({ keys, givenBack }: Members = {}): string {
  if (keys === 0) return 'no units back';
  const { day, month } = Object(givenBack) as Readonly<Record<string, unknown>>;
  const some = (number: unknown, one: string) =>
    typeof number === 'number' ? counted(number, one) : `some ${one}s`;
  return `${some(keys, 'key')} back ${some(day, 'unit')} of the day and ${some(month, 'unit')} of the month`;
}

/** The text " (upstream pets, plan free)", or an empty text. The names are from the configuration. */
function filterText({ upstream, plan }: Members = {}): string {
  const parts = Object.entries({ upstream, plan }).flatMap(([noun, name]) =>
    typeof name === 'string' ? [`${noun} ${name}`] : [],
  );
  return parts.length === 0 ? '' : ` (${parts.join(', ')})`;
}
