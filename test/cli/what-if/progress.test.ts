import { setTimeout as sleep } from 'node:timers/promises';
import { expect, it } from 'vitest';
import { createProgress } from '../../../gateway/cli/output/progress.ts';
import { stopClock } from '../../support/stopped-clock.ts';

/** A stream that stores all text that is written to it. */
function stream(isTTY: boolean) {
  const written: string[] = [];
  const write = (text: string) => written.push(text) > 0;
  return { written, output: { isTTY, columns: 100, write } as unknown as NodeJS.WriteStream };
}

it('a progress bar appears on a terminal after one second, and is removed at the end', async () => {
  const clock = stopClock();
  const { written, output } = stream(true);
  const progress = createProgress(output, { TERM: 'xterm' });
  clock.pass(999);
  progress.show(10, 10_000);
  expect(written).toEqual([]);
  clock.pass(1);
  progress.show(5_000, 10_000);
  expect(written).toEqual([expect.stringContaining('5,000 of 10,000 keys')]);
  progress.end();
  expect(written.at(-1)).toBe('\r\u001b[K');
});

it('no progress bar is written to a stream that cannot replace it', async () => {
  const [pipe, dumb] = [stream(false), stream(true)];
  const all = [createProgress(pipe.output, {}), createProgress(dumb.output, { TERM: 'dumb' })];
  await sleep(1_050);
  for (const progress of all) {
    progress.show(1, 2);
    progress.end();
  }
  expect([...pipe.written, ...dumb.written]).toEqual([]);
});
