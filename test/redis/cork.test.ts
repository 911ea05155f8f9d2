import { Writable } from 'node:stream';
import { setImmediate as turn } from 'node:timers/promises';
import { expect, it } from 'vitest';
import { createCork } from '../../gateway/redis/cork.ts';

it('what is written in one turn, also by what follows from a promise, is one write; the next turn has its own', async () => {
  const writes: number[] = [];
  const stream = new Writable({
    writev(chunks, done) {
      writes.push(chunks.length);
      done();
    },
  });
  const cork = createCork();
  const send = (text: string) => {
    cork([stream]);
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
