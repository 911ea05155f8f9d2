import { pino } from 'pino';
import { describe, expect, it, onTestFinished } from 'vitest';
import { createBlockStore } from '../../../gateway/keys/leaks/blocked/block-store.ts';
import { createBlockedSecrets } from '../../../gateway/keys/leaks/blocked/blocked-secrets.ts';
import { createLimiter } from '../../../gateway/request/limit/limiter.ts';
import type { Key } from '../../../gateway/shared/model.ts';
import { digestSecret } from '../../../gateway/shared/secrets.ts';
import { connectRedis, removeAll } from '../../support/connect-redis.ts';
import { freshPrefix } from '../../support/redis.ts';
import { allRedisForms, startForm, tagsOf } from '../../support/start-form.ts';
import { tunedBounds } from '../../support/tuned-bounds.ts';
import { patientStore } from '../../support/tuning.ts';

/** Long intervals, so that a process detects a leak only by its own decision. */
const bounds = tunedBounds({ ...patientStore, leaksReadIntervalMs: 600_000, leakBlockKeptMs: 1 });
const bans = { after: 5, withinMs: 60_000, forMs: 60_000, maxMs: 60_000 };
const leakOf = (ended = true) => ({ atMs: Date.now(), by: 'github', ended });

for (const form of allRedisForms)
  describe(`processes that share Redis, ${form.name},`, { tags: tagsOf(form, ['a Cluster']) }, () => {
    const place = startForm(form);

    /** @param isInConfiguration whether the configuration of a process, counted from 0, has a secret */
    async function processes(
      count: number,
      isInConfiguration: (digest: string, process: number) => boolean = () => false,
    ) {
      const prefix = freshPrefix();
      return Promise.all(
        Array.from({ length: count }, async (_, process) => {
          const redis = await connectRedis({ prefix, place: place(), bounds });
          const blocked = createBlockedSecrets({
            store: createBlockStore({ redis, bounds }),
            isInConfiguration: (digest) => isInConfiguration(digest, process),
            bounds,
          });
          const limiter = createLimiter({
            redis: { ...place(), prefix, onFailure: 'local' },
            log: pino({ level: 'silent' }),
            nowMs: Date.now,
            planOf: () => undefined,
            leaksReadMs: blocked.readMs,
            bounds,
          });
          onTestFinished(async () => {
            await limiter.close();
            blocked.close();
            await removeAll(redis);
          });
          await blocked.started;
          const rules = { bans, thresholds: [] };
          const decide = async (key: Key) => (await limiter.decide(key, rules, { units: 1 })).kind;
          return { redis, blocked, limiter, decide };
        }),
      );
    }

    const keyWith = (id: string): Key => {
      return { id, plan: 'free', limits: [{ window: 'day', max: 100 }], disabled: false };
    };

    it('notice a leak at the next decision about the key, and then decide again', async () => {
      const [first, second] = await processes(2);
      if (!first || !second) throw new Error('two were made');
      const [leaked, other] = [keyWith('leaked'), keyWith('other')];
      expect(await second.decide(leaked)).toBe('admitted');
      const digest = digestSecret('a secret');
      expect((await first.blocked.add({ digest, keyId: 'leaked', leak: leakOf() })).kind).toBe('added');
      expect(first.blocked.has(digest)).toBe(true);
      await first.blocked.read();
      expect(await first.decide(leaked)).toBe('admitted');

      expect(await second.decide(other)).toBe('admitted');
      expect(second.blocked.has(digest)).toBe(false);
      expect(await second.decide(leaked)).toBe('stale');
      expect(await second.blocked.readAgain()).toBe(true);
      expect(second.blocked.has(digest)).toBe(true);
      expect(await second.decide(leaked)).toBe('admitted');
      // The stale request was not charged.
      const read = await first.limiter.read([leaked]);
      expect(read.kind === 'read' && read.keys[0]?.used).toEqual([3]);
    });

    it('notice a leak also while the key has a grant, and after a grant was given or removed', async () => {
      const [first, second] = await processes(2);
      if (!first || !second) throw new Error('two were made');
      const key = keyWith('granted');
      const grant = { limits: [{ window: 'day', max: 500 }] as const, untilMs: Date.now() + 3_600_000 };
      await first.limiter.adjust('granted', { grant });
      await first.blocked.add({ digest: digestSecret('one'), keyId: 'granted', leak: leakOf() });
      expect(await second.decide(key)).toBe('stale');
      const limitOf = async () => {
        const read = await first.limiter.read([key]);
        return read.kind === 'read' ? read.keys[0]?.rateLimit.inForce.limit : undefined;
      };
      expect(await limitOf()).toBe(500);
      await first.limiter.adjust('granted', { grant: 'none' });
      expect(await limitOf()).toBe(100);
      expect(await second.decide(key)).toBe('stale');
      await first.limiter.adjust('granted', { grant });
      expect([await limitOf(), await second.decide(key)]).toEqual([500, 'stale']);
      await second.blocked.readAgain();
      expect(await second.decide(key)).toBe('admitted');
      await first.blocked.add({ digest: digestSecret('two'), keyId: 'granted', leak: leakOf() });
      expect(await second.decide(key)).toBe('stale');
    });

    it('serve the key again if Redis has lost the leak but not its mark', async () => {
      const [first, second] = await processes(2);
      if (!first || !second) throw new Error('two were made');
      const digest = digestSecret('lost');
      await first.blocked.add({ digest, keyId: 'lost', leak: leakOf() });
      await first.blocked.read();
      await first.redis.commands.del(`${first.redis.prefix}:leaked-secrets`);
      expect(await second.decide(keyWith('lost'))).toBe('stale');
      await second.blocked.readAgain();
      expect(await second.decide(keyWith('lost'))).toBe('admitted');
      await first.blocked.read();
      await first.blocked.add({ digest, keyId: 'lost', leak: leakOf() });
      expect(await second.decide(keyWith('lost'))).toBe('stale');
    });

    it('write the leaks of their configuration again after Redis has lost all data', async () => {
      const [needed, unneeded] = [digestSecret('needed'), digestSecret('unneeded')];
      const [first, second, late] = await processes(
        3,
        (digest, process) => digest === needed && process === 0,
      );
      if (!first || !second || !late) throw new Error('three were made');
      for (const digest of [needed, unneeded]) {
        await first.blocked.add({ digest, keyId: 'kept', leak: leakOf() });
      }
      await second.blocked.read();
      const { redis } = first;
      await redis.commands.del(`${redis.prefix}:leaked-secrets`);
      await redis.commands.del(`${redis.prefix}:{kept}`);
      await first.blocked.read();
      expect([first.blocked.has(needed), first.blocked.has(unneeded)]).toEqual([true, false]);
      expect(await late.decide(keyWith('kept'))).toBe('stale');
      await late.blocked.readAgain();
      expect([late.blocked.has(needed), late.blocked.has(unneeded)]).toEqual([true, false]);
      await second.blocked.read();
      expect(second.blocked.has(needed)).toBe(true);
      await first.blocked.read();
      await first.blocked.read();
      expect(first.blocked.find(needed)?.keyId).toBe('kept');
    });

    it('report that a leak may be stored if Redis refuses its mark', async () => {
      const [first] = await processes(1);
      if (!first) throw new Error('one was made');
      const quotaName = `${first.redis.prefix}:{unmarked}`;
      await first.redis.commands.set(quotaName, 'another program has overwritten the counts');
      const leaked = { digest: digestSecret('unmarked'), keyId: 'unmarked', leak: leakOf() };
      expect(await first.blocked.add(leaked)).toMatchObject({ kind: 'away', mayHaveRun: true });
      await first.redis.commands.del(quotaName);
      expect((await first.blocked.add(leaked)).kind).toBe('known');
    });

    it('keep one entry for a leak that is added twice, and end the secret when a later report ends it', async () => {
      const [first, second] = await processes(2);
      if (!first || !second) throw new Error('two were made');
      const leaked = { digest: digestSecret('twice'), keyId: 'twice' };
      const add = (process: typeof first, ended: boolean) =>
        process.blocked.add({ ...leaked, leak: leakOf(ended) });
      const kinds = (await Promise.all([add(first, false), add(second, false)])).map(({ kind }) => kind);
      expect(kinds.sort()).toEqual(['added', 'known']);
      expect([first.blocked.has(leaked.digest), first.blocked.find(leaked.digest)?.keyId]).toEqual([
        false,
        'twice',
      ]);
      expect((await add(first, true)).kind).toBe('added');
      expect(await add(second, false)).toMatchObject({ kind: 'known', leak: { ended: true } });
      expect(second.blocked.has(leaked.digest)).toBe(true);
    });

    it('remove a leak that no configuration has, and keep a leak that one configuration has', async () => {
      const [needed, unneeded] = [digestSecret('needed'), digestSecret('unneeded')];
      const configuration = new Set([needed]);
      const [first, second] = await processes(2, (digest) => configuration.has(digest));
      if (!first || !second) throw new Error('two were made');
      for (const digest of [needed, unneeded]) {
        await first.blocked.add({ digest, keyId: 'a', leak: leakOf() });
      }
      await second.blocked.read();
      await expect
        .poll(async () => {
          await first.blocked.renew();
          return [...first.blocked.all()].map(({ digest }) => digest);
        })
        .toEqual([needed]);
      await second.blocked.read();
      expect([second.blocked.has(needed), second.blocked.has(unneeded)]).toEqual([true, false]);
      configuration.clear();
      await expect
        .poll(async () => {
          await first.blocked.renew();
          return first.redis.commands.exists(`${first.redis.prefix}:leaked-secrets`);
        })
        .toBe(0);
      await second.blocked.read();
      expect([...second.blocked.all()]).toEqual([]);
    });
  });
