import { describe, expect, it } from 'vitest';
import { createTerminalLog } from '../../gateway/observe/terminal-log.ts';
import { defaultBounds } from '../../gateway/shared/timeouts-and-sizes.ts';

const startMs = Date.parse('2026-11-21T10:00:00Z');

function openTerminal(rewrites = true) {
  let written = '';
  const terminal = { columns: () => 100, colours: false, rewrites };
  const log = createTerminalLog(terminal, defaultBounds, {
    write(text: string) {
      written += text;
    },
  });
  const request = (atMs: number, entry: Record<string, unknown> = {}) => {
    const time = new Date(startMs + atMs).toISOString();
    const usual = { status: 200, method: 'GET', path: '/v1/pets', keyId: 'acme', requestId: `id-${atMs}` };
    log.access(`${JSON.stringify({ time, ...usual, totalMs: 1, ...entry })}\n`);
  };
  return { log, request, written: () => written, rows: () => rowsOf(written) };
}

/** The visible rows of the screen, without overwritten lines. */
function rowsOf(written: string): string[] {
  const rows: string[] = [];
  for (const line of written.split('\n').slice(0, -1)) {
    const parts = line.split('\u001b[1A\u001b[2K');
    for (const _ of parts.slice(1)) rows.pop();
    rows.push(parts.at(-1) ?? '');
  }
  return rows.map((row) => row.replace(/^\[[\d:.]+\] /, ''));
}

describe('the log at a terminal', () => {
  it('shows a loop of equal requests as one line with their number, so that lines before it do not scroll away', () => {
    const { request, rows } = openTerminal();
    for (let index = 0; index < 60; index += 1) request(index * 50);
    for (let index = 60; index < 63; index += 1) request(index * 50, { status: 429, error: 'rate_limited' });
    expect(rows()).toEqual([
      expect.stringMatching(/^200 GET \/v1\/pets .*×60$/),
      expect.stringMatching(/^429 GET \/v1\/pets rate_limited .*×3$/),
    ]);
  });

  it.each([
    ['another path', { path: '/v1/orders' }],
    ['another method', { method: 'POST' }],
    ['another status', { status: 404 }],
    ['another key', { keyId: 'bcme' }],
  ])('shows %s on a line of its own', (_, entry) => {
    const { request, rows } = openTerminal();
    request(0);
    request(10, entry);
    expect(rows()).toHaveLength(2);
  });

  it('shows each request on its own line if requests are slow, and each failure and other log line on its own line', () => {
    const { log, request, rows } = openTerminal();
    request(0);
    request(defaultBounds.sameRequestMs);
    for (const atMs of [1_100, 1_200]) request(atMs, { status: 502 });
    request(1_300);
    log.stream.write(
      `${JSON.stringify({ level: 40, time: startMs, msg: 'Redis is away', reason: 'closed' })}\n`,
    );
    request(1_350);
    expect(rows()).toEqual([
      expect.stringMatching(/^200 .*id-0$/),
      expect.stringMatching(/^200 .*id-1000$/),
      expect.stringMatching(/^502 .*id-1100$/),
      expect.stringMatching(/^502 .*id-1200$/),
      expect.stringMatching(/^200 .*id-1300$/),
      'WARN: Redis is away: reason closed',
      expect.stringMatching(/^200 .*id-1350$/),
    ]);
  });

  it('overwrites nothing on a terminal that cannot', () => {
    const { request, written } = openTerminal(false);
    request(0);
    request(10);
    expect(written()).not.toContain('\u001b');
    expect(written().split('\n')).toHaveLength(3);
  });

  it('shows foreign control characters as text, and none reaches the terminal', () => {
    const { log, request, written } = openTerminal(false);
    request(0, { path: '/v1/\u009b2J', keyId: 'a\u001b]0;title\u0007' });
    log.stream.write(
      `${JSON.stringify({ level: 40, time: startMs, msg: 'away', reason: '\u001b[2J\u202e' })}\n`,
    );
    expect(written()).not.toMatch(/[^\P{C}\n]/u);
    expect(written()).toContain('reason \\u{1b}[2J\\u{202e}');
  });
});
