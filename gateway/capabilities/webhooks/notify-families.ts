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
      labels: ['result'],
      help: 'Attempts to deliver webhooks. `result` is `delivered` or `failed`. The metrics of webhooks are absent without receivers (`notify`).',
      valuesOf: () =>
        Object.entries(state()?.attempts ?? {}).map(([result, value]) => ({ labels: { result }, value })),
    },
    {
      suffix: 'notify_waiting',
      type: 'gauge',
      help: 'Waiting deliveries of webhooks, of all gateways: use `max` and not `sum`.',
      valuesOf: () => one(state()?.waiting),
    },
    {
      suffix: 'notify_dropped_total',
      type: 'counter',
      help: 'Webhook events that were removed before their delivery, because 10,000 events waited, in Redis or in a process while Redis was away. Of all gateways.',
      valuesOf: () => one(state()?.dropped),
    },
  ];
}
