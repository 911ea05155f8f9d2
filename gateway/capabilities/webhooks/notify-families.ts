import type { Family } from '../../observe/metrics/metric-families.ts';
import type { NotifyState } from './notify.ts';

/** The metrics of webhooks. Without receivers, they have no values. */
export function notifyFamilies(
  state: () => Pick<NotifyState, 'attempts' | 'waiting' | 'dropped'> | undefined,
): readonly Family[] {
  const one = (value: number | undefined) => (value === undefined ? [] : [{ labels: {}, value }]);
  return [
    {
      suffix: 'notify_attempts_total',
      type: 'counter',
      help: 'Attempts to deliver webhooks, by result.',
      valuesOf: () =>
        Object.entries(state()?.attempts ?? {}).map(([result, value]) => ({ labels: { result }, value })),
    },
    {
      suffix: 'notify_waiting',
      type: 'gauge',
      help: 'Deliveries of webhooks that wait, in all processes together.',
      valuesOf: () => one(state()?.waiting),
    },
    {
      suffix: 'notify_dropped_total',
      type: 'counter',
      help: 'Webhook events that were dropped because too many waited, in all processes together.',
      valuesOf: () => one(state()?.dropped),
    },
  ];
}
