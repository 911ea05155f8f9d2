import { Writable } from 'node:stream';
import { setImmediate as turn } from 'node:timers/promises';
import { expect, it } from 'vitest';
import { createCork } from '../../gateway/redis/cork.ts';

it('all commands of one turn, also those after a promise, are one write, and the next turn has its own write', async () => {
  const writes: number[] = [];
  const stream = new Writable({
    writev(chunks, done) {
      writes.push(chunks.length);
      done();
    },
  });
  const cork = createCork();
  const send = (text: string) => {
    cork([{ stream }]);
    stream.write(text);
  };
  send('first');
  send('second');
  void Promise.resolve().then(() => send('third'));
  await turn();
  expect(writes).toEqual([3]);
  send('fourth');
  await turn();
  expect(writes).toEqual([3, 1]);
});
