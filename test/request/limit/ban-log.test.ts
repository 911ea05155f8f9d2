import { describe, expect, it } from 'vitest';
import { redisUrl } from '../../support/redis.ts';
import { patientStore } from '../../support/tuning.ts';
import { until } from '../../support/until.ts';
import { decideInTurn, keyOf, type LoggedLimiter, openLimiter, openLimiters } from './limiter-fixture.ts';

const bans = { after: 3, withinMs: 60_000, forMs: 60_000, maxMs: 600_000 };
const quick = { ...patientStore, banEndIntervalMs: 10 };

/** The log lines about bans, without the fields that every line has. */
function banLines({ logged }: LoggedLimiter) {
  return logged
    .filter(({ msg }) => msg.includes('banned'))
    .map(({ level: _level, time: _time, msg, ...details }) => ({ msg, ...details }));
}

describe('the log of bans', () => {
  it('reports a ban of a flooding key once, with its end and its level', async () => {
    const limiter = openLimiter({ tuning: quick });
    const key = keyOf(1, 1_000);
    const decisions = await decideInTurn(limiter, key, 500, bans);
    const last = decisions.at(-1);
    if (last?.kind !== 'banned') throw new Error(`the key is ${last?.kind}`);
    const until = new Date(last.rateLimit.ban?.untilMs ?? 0).toISOString();
    expect(limiter.logged).toEqual([
      expect.objectContaining({ level: 40, msg: 'a key is banned', keyId: key.id, plan: 'free' }),
    ]);
    expect(limiter.logged[0]).toMatchObject({ until });
  });

  it('reports the end of a ban once, even without requests of the key, and then the next ban', async () => {
    let nowMs = Date.now();
    const windowsMs = { minute: 1_000, day: 86_400_000 };
    const limiter = openLimiter({ tuning: quick, nowMs: () => nowMs, windowsMs });
    const [key, other] = [keyOf(1, 1_000), keyOf(1, 1_000)];
    await decideInTurn(limiter, key, 4, bans);
    nowMs += 30_000;
    await decideInTurn(limiter, other, 4, bans);
    nowMs += 30_000;
    await until('the end is logged', async () => banLines(limiter).length === 3);
    expect(banLines(limiter)[2]).toEqual({
      msg: 'a key is no longer banned',
      keyId: key.id,
      plan: 'free',
      ended: 'expired',
    });
    await decideInTurn(limiter, key, 4, bans);
    expect(banLines(limiter)[3]).toMatchObject({ msg: 'a key is banned', keyId: key.id, banLevel: 2 });
    nowMs += 30_000;
    await until('the other end is logged', async () => banLines(limiter).length === 5);
    expect(banLines(limiter)[4]).toMatchObject({ keyId: other.id, ended: 'expired' });
  });

  it('reports a lifted ban: at once on its process, and on other processes with the next request of the key', async () => {
    const { limiters } = openLimiters(2, redisUrl(), { ...quick, refusalRememberedMs: 50 });
    const [here, there] = limiters as [LoggedLimiter, LoggedLimiter];
    const key = keyOf(1, 1_000);
    await decideInTurn(here, key, 4, bans);
    await decideInTurn(there, key, 1, bans);
    for (const limiter of limiters) {
      expect(banLines(limiter)).toEqual([expect.objectContaining({ msg: 'a key is banned', banLevel: 1 })]);
    }
    await here.adjust(key.id, { lift: true, bans });
    expect(banLines(here)[1]).toMatchObject({ msg: 'a key is no longer banned', ended: 'lifted' });
    await until('the other process asks the store again', async () => {
      await there.decide(key, { ...bans, after: 1_000 });
      return banLines(there).length > 1;
    });
    expect(banLines(there)[1]).toMatchObject({ keyId: key.id, ended: 'lifted' });
  });

  it('keeps a limited number of bans, and reports once that there are more', async () => {
    const limiter = openLimiter({ tuning: { ...quick, loggedBansMax: 2 } });
    const keys = Array.from({ length: 5 }, () => keyOf(1, 1_000));
    for (const key of keys) await decideInTurn(limiter, key, 4, bans);
    for (const key of keys) await decideInTurn(limiter, key, 4, bans);
    expect(banLines(limiter).map(({ msg }) => msg)).toEqual([
      'a key is banned',
      'a key is banned',
      expect.stringMatching(/^more than 2 keys are banned/),
    ]);
  });
});
