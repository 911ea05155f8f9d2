import { describe, expect, it, onTestFinished } from 'vitest';
import { createUsage, type Usage } from '../../gateway/usage/usage.ts';
import { connectRedis } from '../support/connect-redis.ts';
import { freshPrefix, redisUrl } from '../support/redis.ts';
import { tunedBounds } from '../support/tuned-bounds.ts';
import { patientStore } from '../support/tuning.ts';

const minuteMs = 60_000;
const hourMs = 60 * minuteMs;
const dayMs = 24 * hourMs;
const today = Math.floor(Date.now() / dayMs) * dayMs;
const nowMs = today + 10.5 * hourMs;
const last24h = { fromMs: nowMs - dayMs, toMs: nowMs };
const bounds = tunedBounds({ ...patientStore, usageDeadSecretsMax: 3 });

/** A request that has ended, without figures that these tests read. */
const ended = { operationId: '', status: 401, ending: 'rejected', ownMs: 1, upstreamMs: undefined } as const;

type Use = readonly [atMs: number, secret: string, keyId: string | undefined, address?: string];

function record({ recorder }: Usage, uses: readonly Use[]): void {
  for (const [atMs, digestStart, keyId, address = '192.0.2.1'] of uses)
    recorder.ended({ ...ended, keyId: undefined, atMs, unauthorized: { keyId, digestStart, address } });
}

describe.each(['in memory', 'in Redis'])('requests with secrets that are not valid, %s', (place) => {
  async function usageOf(prefix = freshPrefix()): Promise<Usage> {
    const redis =
      place === 'in Redis' ? await connectRedis({ prefix, place: { url: redisUrl() } }) : undefined;
    const usage = createUsage({ redis, keepDays: 8, minuteMs, nowMs: () => nowMs, bounds });
    onTestFinished(() => usage.close());
    return usage;
  }

  it('are counted by secret over 24 hours, with their first hour, their last time and their addresses', async () => {
    const usage = await usageOf();
    record(usage, [
      // These hours are before the period, or overlap its beginning.
      [nowMs - dayMs - hourMs, 'aaaaaaaa', 'acme'],
      [nowMs - dayMs, 'aaaaaaaa', 'acme', '192.0.2.2'],
      [today + 5 * minuteMs, 'aaaaaaaa', 'acme', '192.0.2.3'],
      [nowMs - 7, 'aaaaaaaa', 'acme', '192.0.2.3'],
      [nowMs - hourMs, 'bbbbbbbb', 'acme', '2001:db8::1'],
      [nowMs - hourMs, 'bbbbbbbb', 'acme', '2001:db8::2'],
      [nowMs - 5, 'aaaaaaaa', 'id:with:colons'],
    ]);
    expect(await usage.reader.deadSecrets(last24h)).toEqual({
      secrets: [
        {
          ...{ keyId: 'acme', digestStart: 'aaaaaaaa', requests: 3, addresses: 3 },
          ...{ firstHourMs: today - 14 * hourMs, lastMs: nowMs - 7 },
        },
        {
          ...{ keyId: 'acme', digestStart: 'bbbbbbbb', requests: 2, addresses: 1 },
          ...{ firstHourMs: today + 9 * hourMs, lastMs: nowMs - hourMs },
        },
        {
          ...{ keyId: 'id:with:colons', digestStart: 'aaaaaaaa', requests: 1, addresses: 1 },
          ...{ firstHourMs: today + 10 * hourMs, lastMs: nowMs - 5 },
        },
      ],
      others: undefined,
      unknown: undefined,
      unread: undefined,
    });
  });

  it('with unknown secrets are one row, and secrets beyond the maximum of a day are another', async () => {
    const usage = await usageOf();
    record(usage, [
      ...Array.from({ length: 50 }, (_, number): Use => {
        return [nowMs, String(number).padStart(8, '0'), undefined, `192.0.2.${number}`];
      }),
      ...['a', 'b', 'c', 'd', 'e'].map((letter): Use => [nowMs, letter.repeat(8), 'acme']),
      [nowMs, 'aaaaaaaa', 'acme'],
    ]);
    const found = await usage.reader.deadSecrets(last24h);
    expect(found?.secrets.map(({ digestStart, requests }) => [digestStart, requests])).toEqual([
      ['aaaaaaaa', 2],
      ['bbbbbbbb', 1],
      ['cccccccc', 1],
    ]);
    expect(found?.others?.requests).toBe(2);
    expect(found?.unknown?.requests).toBe(50);
    expect(found?.unknown?.addresses).toBeGreaterThan(40);
    expect(found?.unknown?.addresses).toBeLessThan(60);
    // The record of the key also has the requests of its invalid secrets.
    const [minute] = (await usage.reader.minutes('acme', last24h)) ?? [];
    expect(minute?.unauthorized).toBe(6);
  });
});

it('the processes of a fleet count the requests with a secret together', async () => {
  const prefix = freshPrefix();
  const usages = await Promise.all(
    [1, 2].map(async () => {
      const redis = await connectRedis({ prefix, place: { url: redisUrl() } });
      return createUsage({ redis, keepDays: 8, minuteMs, nowMs: () => nowMs, bounds });
    }),
  );
  const [first, second] = usages;
  if (first === undefined || second === undefined) throw new Error('no usage');
  onTestFinished(() => second.close());
  record(first, [[nowMs, 'aaaaaaaa', 'acme', '192.0.2.1']]);
  record(second, [[nowMs, 'aaaaaaaa', 'acme', '192.0.2.2']]);
  await first.close();
  const found = await second.reader.deadSecrets(last24h);
  expect(found?.secrets).toMatchObject([{ keyId: 'acme', requests: 2, addresses: 2 }]);
});
