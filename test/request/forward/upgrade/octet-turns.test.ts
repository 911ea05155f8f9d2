import { PassThrough } from 'node:stream';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { expect, it } from 'vitest';
import { OctetTurns } from '../../../../gateway/request/forward/upgrade/octet-turns.ts';

const bytesPerTurn = 10_000;
const piece = Buffer.alloc(5_000, 'x');

/** Limits how many octets the WebSockets move in one turn. The test ends each turn explicitly. */
function startTurns() {
  let waiting: (() => void)[] = [];
  const turns = new OctetTurns(bytesPerTurn, (finish) => waiting.push(finish));
  const moved = new Map<string, number>();
  return {
    moved,
    /** Opens a WebSocket of the key `holder`. The sender has already written `pieces` chunks to the WebSocket. */
    async open(holder: string, pieces: number): Promise<void> {
      const [from, to] = [new PassThrough(), new PassThrough()];
      to.on('data', (octets) => moved.set(holder, (moved.get(holder) ?? 0) + octets.length));
      turns.relay({ holder, from, to });
      for (let i = 0; i < pieces; i++) from.write(piece);
      await nextTurn();
    },
    async endTurn(): Promise<void> {
      const finished = waiting;
      waiting = [];
      for (const finish of finished) finish();
      await nextTurn();
    },
  };
}

it('all WebSockets of a key together move at most the limit in a turn, plus the rest of one read', async () => {
  const { moved, open, endTurn } = startTurns();
  for (let i = 0; i < 8; i++) await open('greedy', 3);
  let before = 0;
  let turns = 0;
  while (before < 8 * 3 * piece.length) {
    const inThisTurn = (moved.get('greedy') ?? 0) - before;
    expect(inThisTurn).toBeGreaterThan(0);
    expect(inThisTurn).toBeLessThan(bytesPerTurn + 3 * piece.length);
    before += inThisTurn;
    turns++;
    await endTurn();
  }
  expect(turns).toBeGreaterThan(4);
});

it('a WebSocket of another key waits for one WebSocket of each key, however many those keys have', async () => {
  const { moved, open, endTurn } = startTurns();
  for (let i = 0; i < 20; i++) await open('greedy', 3);
  await open('other', 1);
  expect(moved.get('other')).toBeUndefined();
  await endTurn();
  await endTurn();
  expect(moved.get('other')).toBe(piece.length);
});
