import { describe, expect, it } from 'vitest';
import { fleetState } from '../../../gateway/admin/wires/fleet/fleet.ts';
import { screenOf } from '../../../gateway/cli/output/screen.ts';
import { type TopData, topPicture } from '../../../gateway/cli/top/top-picture.ts';
import { widthOf } from '../../../gateway/shared/terminal/text-width.ts';
import { runTollgate } from '../../support/run-tollgate.ts';
import { startStubAdmin } from '../../support/stub-admin.ts';

const nowMs = Date.parse('2026-11-22T10:31:07Z');
const plain = screenOf({}, {});

function processState(index: number, members: object = {}) {
  return {
    ...{ id: `${index}`.padStart(12, '0'), host: 'gateway-host-0123456789', pid: 10_000 + index },
    ...{ startedAt: '2026-11-22T09:00:00Z', phase: 'serving', configVersion: '3f2ab4c3f2ab' },
    ...{ configLoadedAt: '2026-11-22T09:00:00Z' },
    ...{ lastMinute: { requests: 0, failed: { gateway: { requests: 0 }, upstream: { requests: 0 } } } },
    ...{ requestsPerSecond: 1_204.25, inFlight: 12, connections: 200, p50Ms: 0.31, p99Ms: 2.125 },
    ...{ outcomes: { '2xx': 1_100, '3xx': 0, '4xx': 3.25, '429': 100, '5xx': 0 }, failuresPerSecond: 0 },
    ...{ store: { kind: 'redis', available: true }, targets: 2, healthyTargets: 2, ageMs: 500 },
    ...members,
  };
}

function keyItem(id: string, figure: number, members: object = {}) {
  return {
    ...{ id, plan: 'enterprise', state: 'limited', source: 'file', windows: [] },
    ...{ offered24h: figure, refused24h: figure },
    ...members,
  };
}

function dataOf(members: object = {}, keys = [keyItem('acme', 5_184)]): TopData {
  const state = fleetState.parse({
    verdict: { severity: 'well', sentence: 'All well.', faults: [] },
    environment: 'production',
    config: { version: '3f2ab4c3f2ab', loadedAt: '2026-11-22T09:00:00Z' },
    store: { kind: 'redis', available: true, sinceAt: '2026-11-22T09:00:00Z' },
    upstreams: [
      {
        name: 'default',
        url: 'http://backend:3000',
        targets: [{ address: '10.0.0.7:3000', healthy: true, inFlight: 3, sinceAt: '2026-11-22T09:00:00Z' }],
      },
    ],
    certificates: {},
    isComplete: true,
    answeredBy: '000000000000',
    token: { name: 'ops', may: 'read' },
    processes: [processState(0)],
    ...members,
  });
  return { state, busiest: keys, mostRefused: keys } as TopData;
}

describe('the screen of top', () => {
  it('of a fleet adds up rates, and shows the smallest and the largest percentile', () => {
    const processes = [
      processState(0),
      processState(1, { p50Ms: 0.4, p99Ms: 3 }),
      processState(2, { p50Ms: undefined, p99Ms: undefined }),
    ];
    const lines = topPicture(dataOf({ processes }), { nowMs }, plain);
    expect(lines.join('\n')).toMatch(
      /^requests\/s +3,613 +of these {2}2xx 3,300 {2}3xx 0 {2}4xx 9\.8 {2}429 300 {2}5xx 0$/m,
    );
    expect(lines.join('\n')).toMatch(/^gateway +p50 0\.31 to 0\.40 ms +p99 2\.1 to 3\.0 ms$/m);
    expect(lines.join('\n')).toMatch(
      /^under way +36 requests, 600 connections +store {2}Redis, there, 1 h 31 min$/m,
    );
  });

  it('of a gateway with workers names the worker of each process, and has no such column without workers', () => {
    const pictureOf = (members: readonly object[], screen = plain) => {
      const processes = members.map((each, index) => processState(index, each));
      return topPicture(dataOf({ processes }), { nowMs }, screen).join('\n');
    };
    const ofWorkers = pictureOf([{ worker: 1 }, { worker: 2 }]);
    expect(ofWorkers).toMatch(/^PROCESS +WORKER +PHASE/m);
    expect(ofWorkers).toMatch(/:10001 +2 +serving/);
    expect(pictureOf([{ worker: 1 }], { ...plain, columns: 80 })).not.toContain('WORKER');
    expect(pictureOf([{}])).toMatch(/^PROCESS +PHASE.* IN FLIGHT/m);
  });

  it('shows the most serious fault first, and then all other faults with their beginning', () => {
    const faults = [
      { severity: 'bad', code: 'redis_away', text: 'Redis is away.', sinceAt: '2026-11-22T10:29:00Z' },
      {
        severity: 'warning',
        code: 'recording_paused',
        text: 'The record pauses.',
        sinceAt: '2026-11-21T10:31:00Z',
      },
    ];
    const verdict = { severity: 'bad', sentence: 'Redis is away.', faults };
    const colours = screenOf({ isTTY: true, columns: 100 }, { TERM: 'xterm' });
    const lines = topPicture(
      dataOf({ verdict, isComplete: false, missing: { what: ['processes'] } }),
      { nowMs },
      colours,
    );
    expect(lines.slice(1, 5)).toEqual([
      '\u001b[31mRedis is away. Since 10:29:00 UTC, 2 min.\u001b[0m',
      '\u001b[33mThe record pauses. Since 2026-11-21 10:31:00 UTC, 24 h.\u001b[0m',
      '\u001b[33mMissing: processes that are not in the memory of this gateway, so figures may be too low.\u001b[0m',
      '',
    ]);
    const missing = { what: ['processes'] };
    const alsoKeys = { ...dataOf({ isComplete: false, missing }), keysLack: ['requests', 'keys'] };
    expect(topPicture(alsoKeys, { nowMs }, plain)[2]).toContain(
      ' Missing: processes, requests and keys that ',
    );
    expect(topPicture(dataOf({ isComplete: false, missing }), { nowMs }, plain)[2]).toBe(
      'Redis does not reply. Missing: processes that are not in the memory of this gateway, so figures may be too low.',
    );
    const draining = {
      ...{ severity: 'notice', code: 'draining', text: 'A gateway drains.' },
      sinceAt: '2026-11-22T10:31:00Z',
    };
    const well = { severity: 'well', sentence: 'All well. 3 requests a second.', faults: [draining] };
    expect(topPicture(dataOf({ verdict: well }), { nowMs }, plain).slice(1, 3)).toEqual([
      well.sentence,
      'A gateway drains. Since 10:31:00 UTC, 7 s.',
    ]);
  });

  const crowd = dataOf(
    {
      processes: Array.from({ length: 500 }, (_, index) =>
        processState(index, index === 499 ? { configVersion: 'aaaaaaaaaaaa' } : {}),
      ),
      upstreams: Array.from({ length: 32 }, (_, index) => ({
        name: `upstream-${index}`,
        url: 'x',
        targets: [
          {
            address: `[fd00:1234:5678:9abc:def0:1234:5678:${index}]:30000`,
            healthy: index !== 31,
            inFlight: 4_096,
            sinceAt: '2026-11-22T09:00:00Z',
          },
        ],
      })),
    },
    Array.from({ length: 10 }, (_, index) =>
      keyItem(`customer-${'x'.repeat(80)}-${index}`, 10 ** 9 + index, { state: 'disabled' }),
    ),
  );

  it.each([
    [80, 24],
    [80, 12],
    [100, 24],
    [100, 50],
    [60, 15],
    [40, 5],
    [200, 60],
  ])(
    'of 500 processes, 32 upstreams and long names stays within %i columns and %i rows, also in colour',
    (columns, rows) => {
      const notice = 'No server answers at http://127.0.0.1:9090: start the gateway.';
      for (const more of [{}, { notice }]) {
        const lines = topPicture(crowd, { nowMs, ...more }, { ...plain, columns, rows });
        expect(lines.length).toBeLessThanOrEqual(rows);
        for (const line of lines) expect(widthOf(line)).toBeLessThanOrEqual(columns);
        const screen = screenOf({ isTTY: true, columns }, { TERM: 'xterm' });
        const bare = topPicture(crowd, { nowMs, ...more }, { ...screen, rows }).map((line) =>
          line.replace(/\u001b\[\d+m/g, ''),
        );
        expect(bare.map((line) => line.trimEnd())).toEqual(lines.map((line) => line.trimEnd()));
      }
    },
  );

  it('shows each figure whole in 40 columns, also in colour', () => {
    const processes = [
      processState(0, { outcomes: { '2xx': 1_100.4, '3xx': 0, '4xx': 3.25, '429': 100, '5xx': 2 } }),
    ];
    const colours = screenOf({ isTTY: true, columns: 40 }, { TERM: 'xterm' });
    const lines = topPicture(dataOf({ processes }), { nowMs }, colours);
    const text = lines.join('\n').replace(/\u001b\[\d+m/g, '');
    for (const part of [
      '2xx 1,100',
      '3xx 0',
      '4xx 3.3',
      '429 100',
      '5xx 2.0',
      '200 connections',
      'Redis, there,',
      '1 h 31 min',
    ])
      expect(text).toContain(part);
    expect(text.match(/^acme +([\d,]+) +acme +([\d,]+)$/m)?.slice(1)).toEqual(['5,184', '5,184']);
    expect(lines.join('\n')).toContain('\u001b[33m429 100');
  });

  it('does not show 5xx that clients caused as a fault or in red', () => {
    const colours = screenOf({ isTTY: true, columns: 100 }, { TERM: 'xterm' });
    const pictureOf = (members: object) =>
      topPicture(
        dataOf({ processes: [processState(0, { outcomes: { '5xx': 2 }, ...members })] }),
        { nowMs },
        colours,
      ).join('\n');
    expect(pictureOf({})).toContain('  5xx 2.0');
    expect(pictureOf({ failuresPerSecond: 1 })).toContain('\u001b[31m5xx 2.0');
  });

  it('in 80 columns and 24 rows has a part of every list, the worst entries first', () => {
    const text = topPicture(crowd, { nowMs }, { ...plain, columns: 80, rows: 24 }).join('\n');
    expect(text).toMatch(/^PROCESS .*\n.* other$/m);
    expect(text).toMatch(/^and 49\d more$/m);
    expect(text).toMatch(/^upstream-31 .* not healthy +4,096$/m);
    expect(text).toMatch(/^cust\S*…\S* +1,000,000,000 +disabled /m);
  });
});

describe('a gateway with hostile names', () => {
  const hostile = '\u001b[2J\u001b]0;x\u0007\u009b31m\u202e\nroot # ';
  const item = {
    ...keyItem(hostile, 3),
    ...{ name: hostile, plan: hostile, state: hostile, lastSeenMs: nowMs },
    windows: [{ name: hostile, limit: 3, used: 3, remaining: 0, resetMs: nowMs }],
  };
  const state = {
    ...dataOf({}).state,
    environment: hostile,
    verdict: {
      severity: hostile,
      sentence: hostile,
      faults: [{ severity: hostile, code: hostile, text: hostile, sinceAt: hostile }],
    },
    config: { version: hostile, loadedAt: hostile },
    store: { kind: 'redis', available: false },
    upstreams: [
      {
        name: hostile,
        url: hostile,
        targets: [{ address: hostile, healthy: false, inFlight: 1, sinceAt: hostile }],
      },
    ],
    processes: [
      processState(0, { host: hostile, phase: hostile, configVersion: hostile, startedAt: hostile }),
    ],
  };
  const row = { at: hostile, offered: 3, admitted: 2, refused: { [hostile]: 1 }, banned: 0 };
  const bodies: Readonly<Record<string, unknown>> = {
    '/state': state,
    '/keys': { keys: [item, item] },
    '/keys/acme': {
      ...item,
      operations: [hostile],
      secrets: [{ digestStart: hostile, expiresAt: hostile, isExpired: false }],
      strikes: 1,
      operations24h: [{ operationId: hostile, requests: 1, clientErrors: 0, serverErrors: 0 }],
      recentRefusals: [row],
      why: { sentence: hostile },
    },
    '/keys/acme/usage': { step: hostile, rows: [row] },
    '/operations/listPets/callers': {
      operationId: hostile,
      fromAt: hostile,
      toAt: hostile,
      callers: [
        {
          id: hostile,
          name: hostile,
          plan: hostile,
          requests: 1,
          clientErrors: 0,
          serverErrors: 0,
          lastSeenMs: nowMs,
        },
      ],
      days: [],
    },
    '/events': {
      isComplete: true,
      events: [
        {
          id: '1-1',
          at: hostile,
          beganAt: hostile,
          kind: hostile,
          group: hostile,
          text: hostile,
          process: hostile,
          processes: 2,
        },
      ],
    },
    '/changes': {
      isComplete: true,
      changes: [
        {
          id: '1-1',
          at: hostile,
          action: hostile,
          by: hostile,
          files: [hostile],
          text: hostile,
          before: hostile,
          after: hostile,
          error: hostile,
          process: hostile,
          processes: 1,
        },
      ],
    },
    '/keys/acme/forecast': { limit: 5, used: 1, sentence: hostile },
    '/flush': { isComplete: true, behind: [] },
  };

  it.each([
    'top --once',
    'keys list',
    'keys show acme',
    'why acme',
    'callers listPets',
    'usage acme',
    'processes',
    'changes',
    'events',
  ])('%s shows their control characters as text, in words and as JSON', async (command) => {
    const { url } = await startStubAdmin((path) => ({
      body: bodies[path.replace('/api/v1', '').replace(/\?.*/, '')],
    }));
    const env = { TOLLGATE_ADMIN: url, TOLLGATE_ADMIN_TOKEN: 'x' };
    for (const more of [[], ['--json']]) {
      const { exitCode, stdout, stderr } = await runTollgate([...command.split(' '), ...more], env);
      expect({ exitCode, stderr }).toEqual({ exitCode: 0, stderr: '' });
      expect(stdout).not.toMatch(/[^\P{C}\n]/u);
      expect(stdout).toMatch(more.length > 0 ? /\\u001b\[2J/ : /\\u\{1b\}/);
    }
  });
});
