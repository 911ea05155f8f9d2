import type { Measurement } from '../../support/capability-cases.ts';
import { measureWebhooks } from './measure-webhooks.ts';

/** The measurements of `npm run faults`. */
export const measurements: readonly Measurement[] = [
  {
    rows: '42',
    what: 'webhooks: the sender killed three times and Redis frozen for 10 s, while one receiver works, and others respond 500, hang, redirect or send 1 GB',
    async measure() {
      // Shorter pauses between retries than in production, so that the measurement ends soon.
      const tuning = { webhookRetryPauseMaxMs: 10_000 };
      const found = await measureWebhooks({ eventsPerRound: 200, kills: 3, frozenMs: 10_000, tuning });
      const { events, lost, repeated, broken, takeoverMs, slowestMs } = found;
      const sum = (counts: Readonly<Record<string, number>>) =>
        Object.values(counts).reduce((total, count) => total + count, 0);
      return {
        figure: `Of ${events} events, ${sum(lost)} did not reach each of the 5 receivers, and ${broken.length} had different bodies or a wrong signature. Receivers accepted ${sum(repeated)} deliveries again. After a kill, another process sent within ${takeoverMs.map(ms).join(', ')}. The working receiver got the first 200 events within ${ms(slowestMs)}, although the other receivers failed.`,
        holds:
          events === 1_203 && sum(lost) === 0 && broken.length === 0 && Math.max(...takeoverMs) <= 30_000,
      };
    },
  },
];

function ms(value: number): string {
  return `${value < 10 ? value.toFixed(1) : value.toFixed(0)} ms`;
}
