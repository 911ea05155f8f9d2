import fc from 'fast-check';
import { describe, expect, it, onTestFinished } from 'vitest';
import type { GuardedEdit } from '../../../../gateway/capabilities/guard/guarded-edit.ts';
import { firstState, type GuardState } from '../../../../gateway/capabilities/guard/process/decide-guard.ts';
import {
  createGuardStore,
  type GuardReply,
  type GuardStore,
} from '../../../../gateway/capabilities/guard/process/guard-store.ts';
import { guardKeys } from '../../../../gateway/capabilities/guard/process/redis-keys.ts';
import { connectRedis, removeAll } from '../../../support/connect-redis.ts';
import { freshPrefix } from '../../../support/redis.ts';
import { allRedisForms, startForm, tagsOf } from '../../../support/start-form.ts';
import { tunedBounds } from '../../../support/tuned-bounds.ts';
import { patientStore } from '../../../support/tuning.ts';
import { countsOf, guardedEdit, type Requests } from './guard-fixture.ts';
import { addReport, type GuardModel } from './guard-model.ts';

const bounds = tunedBounds(patientStore);
const minuteMs = 60_000;

/** Two processes that share a store, and the edit of a new plan. */
interface Fleet {
  readonly edit: GuardedEdit;
  readonly stores: readonly [GuardStore, GuardStore];
}

/** Sends the counts of one report. Each call has a new number, unless the number is given. */
function reporter(store: GuardStore, edit: GuardedEdit) {
  let last = 0;
  return async (
    requests: Requests,
    { agoMs = 0, known = firstState, keysMin = 1, number = ++last }: ReportOptions = {},
  ): Promise<GuardReply> => {
    const counts = countsOf(edit, requests, bounds);
    const periods = counts.size === 0 ? [] : [{ agoMs, counts }];
    return replied(await store.report(edit, { known, keysMin, number, periods }));
  };
}

interface ReportOptions {
  readonly agoMs?: number;
  readonly known?: GuardState;
  readonly keysMin?: number;
  readonly number?: number;
}

function replied(reply: Awaited<ReturnType<GuardStore['report']>>): GuardReply {
  if (reply.kind === 'away') throw new Error(`the store did not reply: ${reply.reason}`);
  return reply;
}

const isReverted = ({ state }: GuardReply) => state.revert !== undefined;
/** Five keys with one refusal each: at 3 %, the refusals of one of 100 requests count up to 0.6. */
const fiveKeys = { a: 1, b: 1, c: 1, d: 1, e: 1 };

function guaranteesOf(start: () => Promise<Fleet>): void {
  it('reverts the plan once when the share is reached, and both processes learn it', async () => {
    const { edit, stores } = await start();
    const [one, other] = [reporter(stores[0], edit), reporter(stores[1], edit)];
    expect(await one({ admitted: 95, refused: { a: 1, b: 1 } })).toMatchObject({
      state: firstState,
      figures: { requests: 97, refused: 2 },
      hasChanged: false,
    });
    const reverting = await other({ admitted: 0, refused: { c: 1, d: 1, e: 1 } });
    expect(reverting).toMatchObject({
      state: { generation: 0, revert: { requests: 100, refused: 5 } },
      hasChanged: true,
    });
    const seen = await one({});
    expect([seen.state, seen.hasChanged]).toEqual([reverting.state, false]);
    const later = await other({ admitted: 1_000 });
    expect([later.state, later.hasChanged]).toEqual([reverting.state, false]);
  });

  it.each<[name: string, requests: Requests, reverts: boolean]>([
    ['less than 100 requests', { admitted: 94, refused: fiveKeys }, false],
    ['a share below the maximum', { admitted: 996, refused: { a: 5, b: 5, c: 5, d: 5, e: 4, f: 5 } }, false],
    ['a flood by one of six keys', { admitted: ['b', 'c', 'd', 'e', 'f'], refused: { a: 10_000 } }, false],
    [
      'floods by four of six keys',
      { admitted: ['a', 'f'], refused: { b: 900, c: 900, d: 900, e: 900 } },
      false,
    ],
    ['floods by five of six keys', { admitted: ['f'], refused: { a: 9, b: 99, c: 99, d: 99, e: 99 } }, true],
    ['a flood by the only key', { admitted: ['a'], refused: { a: 100 } }, true],
    ['a flood by one of two keys', { admitted: ['a', 'b'], refused: { a: 10_000 } }, false],
    ['refusals of two of two keys', { admitted: ['a', 'b'], refused: { a: 100, b: 2 } }, true],
    ['refusals of two of four keys', { admitted: ['c', 'd'], refused: { a: 100, b: 100 } }, false],
    ['refusals of more keys than a slot lists', { admitted: 10_000, refused: many(1_000) }, true],
    ['no refusal', { admitted: 5_000 }, false],
    [
      'six of seven keys have refusals, and the seventh key sends 10,000 requests that are refused',
      { admitted: sixTimes(47), refused: { ...sixKeys(3), flood: 10_000 } },
      true,
    ],
    [
      'six of seven keys have refusals, and the seventh key sends 10,000 requests that are admitted',
      { admitted: [...sixTimes(47), ...Array<string>(10_000).fill('flood')], refused: sixKeys(3) },
      true,
    ],
    [
      'six of seven keys have fewer refusals, and the seventh key floods',
      { admitted: sixTimes(98), refused: { ...sixKeys(2), flood: 10_000 } },
      false,
    ],
  ])('%s', async (_, requests, reverts) => {
    const { edit, stores } = await start();
    expect(isReverted(await reporter(stores[0], edit)(requests))).toBe(reverts);
  });

  it('states the requests and the refusals of a revert as it counts them', async () => {
    const { edit, stores } = await start();
    const requests = { admitted: sixTimes(47), refused: { ...sixKeys(3), flood: 10_000 } };
    // Each of six keys has 50 requests. The seventh key counts for a fifth: 75 of 375 requests, which are all refused.
    expect((await reporter(stores[0], edit)(requests)).state.revert).toMatchObject({
      requests: 375,
      refused: 6 * 3 + 75,
    });
  });

  it.each([
    [1, 1, true],
    [1, 2, false],
    [2, 2, true],
    [3, 4, false],
    [4, 4, true],
  ])('refusals of %i keys, where a revert needs %i', async (keys, keysMin, reverts) => {
    const { edit, stores } = await start();
    const refused = Object.fromEntries(Array.from({ length: keys }, (_, index) => [`key-${index}`, 100]));
    const reply = await reporter(stores[0], edit)({ refused }, { keysMin });
    expect(isReverted(reply)).toBe(reverts);
  });

  it('counts requests for ten minutes, by the age that the process states', async () => {
    const { edit, stores } = await start();
    const report = reporter(stores[0], edit);
    await report({ admitted: 10, refused: { a: 1 } }, { agoMs: 11 * minuteMs });
    await report({ admitted: 20, refused: { a: 2 } }, { agoMs: 9 * minuteMs });
    expect((await report({ admitted: 40 })).figures).toEqual({ requests: 62, refused: 2 });
  });

  it('lets an operator retry the edit once, from zero', async () => {
    const { edit, stores } = await start();
    const [one, other] = [reporter(stores[0], edit), reporter(stores[1], edit)];
    const { state: reverted } = await one({ admitted: 95, refused: fiveKeys });
    const retried = replied(await stores[1].retry(edit, firstState));
    expect(retried).toMatchObject({ state: { generation: 1, revert: undefined }, hasChanged: true });
    expect(replied(await stores[1].retry(edit, retried.state)).hasChanged).toBe(false);
    // This process has not learnt of the retry, so its counts belong to the time before the retry.
    const late = await one({ admitted: 95, refused: fiveKeys }, { known: reverted });
    expect([late.state, late.figures]).toEqual([retried.state, { requests: 0, refused: 0 }]);
    const again = await other({ admitted: 95, refused: fiveKeys }, { known: retried.state });
    expect(again.state).toMatchObject({ generation: 1, revert: { requests: 100, refused: 5 } });
  });

  it('restores a lost state from a process that knows it, and never an older state', async () => {
    const { edit, stores } = await start();
    const [one, other] = [reporter(stores[0], edit), reporter(stores[1], edit)];
    const revert = { sinceMs: 1_700_000_000_000, requests: 4_100, refused: 132 };
    expect(await other({})).toMatchObject({ state: firstState });
    const known = { generation: 3, revert };
    expect(await one({}, { known })).toMatchObject({ state: known, hasChanged: false });
    expect((await other({ admitted: 1 })).state).toEqual(known);
    const retried = { generation: 4, revert: undefined };
    expect((await other({}, { known: retried })).state).toEqual(retried);
    expect((await one({}, { known })).state).toEqual(retried);
  });

  it('neither counts nor reverts after the end of the guard', async () => {
    const { edit, stores } = await start();
    const ended = { ...edit, guard: { ...edit.guard, untilMs: Date.now() - 1 } };
    const reply = await reporter(stores[0], ended)({ admitted: 95, refused: fiveKeys });
    expect([reply.state, reply.figures]).toEqual([firstState, { requests: 0, refused: 0 }]);
    const known = { generation: 0, revert: { sinceMs: 1, requests: 100, refused: 5 } };
    expect((await reporter(stores[0], ended)({}, { known })).state).toEqual(known);
  });
}

const six = ['a', 'b', 'c', 'd', 'e', 'f'];

function sixKeys(refusals: number): Readonly<Record<string, number>> {
  return Object.fromEntries(six.map((key) => [key, refusals]));
}

function sixTimes(requests: number): readonly string[] {
  return six.flatMap((key) => Array<string>(requests).fill(key));
}

function many(keys: number): Readonly<Record<string, number>> {
  return Object.fromEntries(Array.from({ length: keys }, (_, index) => [`key-${index}`, 1]));
}

for (const form of allRedisForms)
  describe(`the store in Redis, ${form.name}`, { tags: tagsOf(form) }, () => {
    const place = startForm(form);
    const connect = async () => {
      const redis = await connectRedis({ prefix: freshPrefix(), place: place(), bounds });
      onTestFinished(() => removeAll(redis));
      return redis;
    };

    guaranteesOf(async () => {
      const redis = await connect();
      const [one, other] = ['p1', 'p2'].map((id) => createGuardStore({ redis, processId: id, bounds }));
      if (one === undefined || other === undefined) throw new Error('two stores were made');
      return { edit: guardedEdit(), stores: [one, other] };
    });

    it('counts a report that is sent twice once', async () => {
      const redis = await connect();
      const edit = guardedEdit();
      const report = reporter(createGuardStore({ redis, processId: 'p1', bounds }), edit);
      const other = reporter(createGuardStore({ redis, processId: 'p2', bounds }), edit);
      await report({ admitted: 50, refused: { a: 1 } }, { number: 7 });
      await other({ admitted: 1 }, { number: 7 });
      const again = await report({ admitted: 50, refused: { a: 1 } }, { number: 7 });
      expect(again.figures).toEqual({ requests: 52, refused: 1 });
    });

    it('ignores counts of the future and of the distant past, which a step of the clock of Redis leaves behind', async () => {
      const redis = await connect();
      const edit = guardedEdit();
      const report = reporter(createGuardStore({ redis, processId: 'p1', bounds }), edit);
      const name = guardKeys.guard.name(redis.prefix, edit.identity);
      await report({ admitted: 1 });
      for (const atMs of [Date.now() + 60 * minuteMs, Date.now() - 60 * minuteMs]) {
        const slot = Math.floor(atMs / bounds.guardSlotMs);
        await redis.commands.hset(name, `keys:${slot}`, 'aaaaaaaa 5000 4000', 'process:old', `9 ${slot}`);
        await redis.commands.hset(name, 'sums', `${slot} 1 5000 4000 aaaaaaaa 5000 4000`);
      }
      const reply = await report({ admitted: 94, refused: fiveKeys });
      expect(reply.state.revert).toMatchObject({ requests: 100, refused: 5 });
      const fields = Object.keys(await redis.commands.hgetall(name));
      expect(fields.filter((field) => !/^keys:\d+$/.test(field)).toSorted()).toEqual([
        'process:p1',
        'state',
        'sums',
      ]);
    });

    it('has an expiry, which each slot renews', async () => {
      const redis = await connect();
      const edit = guardedEdit();
      const report = reporter(createGuardStore({ redis, processId: 'p1', bounds }), edit);
      const name = guardKeys.guard.name(redis.prefix, edit.identity);
      const known = { generation: 2, revert: undefined };
      for (const each of [firstState, known]) {
        await report({ admitted: 1 }, { known: each });
        expect(await redis.commands.pttl(name)).toBeGreaterThan(bounds.guardKeptMs - minuteMs);
      }
    });

    it('decides as a model does, for any reports', async () => {
      const redis = await connect();
      const keys = ['a', 'b', 'c', 'd', 'e', 'f', 'g'];
      const arbitraryReport = fc.record({
        process: fc.constantFrom('p0', 'p1'),
        admitted: fc.array(fc.constantFrom(...keys), { maxLength: 40 }),
        refused: fc.dictionary(fc.constantFrom(...keys), fc.integer({ min: 1, max: 9 }), { maxKeys: 5 }),
        // No slot is close to ten minutes old, because the model has no clock of its own and drops no slot.
        agoMs: fc.integer({ min: 0, max: 9 * minuteMs }),
      });
      const arbitrary = fc.record({
        share: fc.constantFrom(0.01, 0.03, 0.07, 0.2, 0.5, 1),
        namesMax: fc.constantFrom(2, 64),
        keysMin: fc.integer({ min: 1, max: 5 }),
        reports: fc.array(arbitraryReport, { minLength: 1, maxLength: 12 }),
      });
      let reverted = 0;
      await fc.assert(
        fc.asyncProperty(arbitrary, async ({ share, namesMax, keysMin, reports }) => {
          const tuned = { ...bounds, guardKeysPerSlotMax: namesMax };
          const model: GuardModel = { slots: new Map(), revert: undefined };
          const edit = guardedEdit({ refusedShareMax: share });
          for (const [index, { process, admitted, refused, agoMs }] of reports.entries()) {
            const counts = countsOf(edit, { admitted, refused }, tuned);
            const report = { known: firstState, keysMin, number: index, periods: [{ agoMs, counts }] };
            const store = createGuardStore({ redis, processId: process, bounds: tuned });
            const reply = replied(await store.report(edit, report));
            const expected = addReport(model, report, share, Date.now(), tuned);
            expect([reply.hasChanged, reply.figures]).toEqual([expected.hasChanged, expected.figures]);
            const { revert } = reply.state;
            expect(revert && { requests: revert.requests, refused: revert.refused }).toEqual(model.revert);
            if (expected.hasChanged) reverted += 1;
          }
        }),
        { numRuns: 150 },
      );
      expect(reverted).toBeGreaterThan(10);
    });
  });
