import { expect, it } from 'vitest';
import { joinNextRun } from '../../../gateway/shared/structures/join-next-run.ts';

it('calls during a run share one later run, and a failed run does not stop later runs', async () => {
  const ends: PromiseWithResolvers<number>[] = [];
  const join = joinNextRun(() => {
    const end = Promise.withResolvers<number>();
    ends.push(end);
    return end.promise;
  });
  const first = join();
  await expect.poll(() => ends.length).toBe(1);
  const [second, third] = [join(), join()];
  expect(ends).toHaveLength(1);
  ends[0]?.resolve(1);
  expect(await first).toBe(1);
  await expect.poll(() => ends.length).toBe(2);
  const fourth = join();
  ends[1]?.reject(new Error('away'));
  expect(await Promise.allSettled([second, third])).toEqual(
    Array(2).fill({ status: 'rejected', reason: new Error('away') }),
  );
  await expect.poll(() => ends.length).toBe(3);
  ends[2]?.resolve(3);
  expect(await fourth).toBe(3);
});
