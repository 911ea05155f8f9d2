import { expect, it } from 'vitest';
import { stateOf } from '../../../gateway/capabilities/webhooks/operators.ts';

const attempts = { delivered: 0, failed: 7 };
const failing = [
  { receiver: 'a1', origin: 'https://hooks.example.com', sinceMs: 1_000, error: 'status 500' },
];

it('a receiver that gets nothing and dropped events are faults, and do not affect the readiness', () => {
  expect(stateOf({ attempts, waiting: 7, dropped: 3, droppedSinceMs: 61_000, failing })).toEqual({
    members: {},
    reasons: [],
    faults: [
      {
        severity: 'warning',
        code: 'webhooks_fail',
        text: 'The receiver of webhooks at https://hooks.example.com gets nothing: status 500.',
        sinceAt: '1970-01-01T00:00:01.000Z',
      },
      {
        severity: 'warning',
        code: 'webhooks_dropped',
        text: 'Events for webhooks were dropped, because too many waited for their delivery.',
        sinceAt: '1970-01-01T00:01:01.000Z',
      },
    ],
  });
});

it.each([undefined, { attempts, waiting: 0, dropped: 3, droppedSinceMs: undefined, failing: [] }])(
  'without a fault, there is nothing to show: %j',
  (notify) => {
    expect(stateOf(notify)).toEqual({ members: {}, reasons: [], faults: [] });
  },
);
