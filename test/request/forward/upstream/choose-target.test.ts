import { describe, expect, it } from 'vitest';
import type { Health } from '../../../../gateway/request/forward/upstream/check-health.ts';
import { chooseTarget } from '../../../../gateway/request/forward/upstream/choose-target.ts';

const target = (name: string, inFlight = 0, health: Health = 'healthy') => ({
  name,
  inFlight,
  health,
});
type Named = ReturnType<typeof target>;
const hasRoom = ({ inFlight }: Named) => inFlight < 10;

function choose(targets: Named[], { avoid, random = 0 }: { avoid?: Named; random?: number } = {}) {
  return chooseTarget({ targets, loadOf: ({ inFlight }) => inFlight, hasRoom, avoid, random: () => random })
    ?.name;
}

describe('the choice among targets', () => {
  it('takes the fewest outstanding requests', () => {
    expect(choose([target('a', 3), target('b', 1), target('c', 2)])).toBe('b');
  });

  it('never takes a target that is down, however idle', () => {
    expect(choose([target('a', 0, 'down'), target('b', 9)])).toBe('b');
    expect(choose([target('a', 0, 'down')])).toBeUndefined();
  });

  it('skips a silent target while another is healthy, even if the healthy target is full', () => {
    expect(choose([target('a', 0, 'silent'), target('b', 9)])).toBe('b');
    expect(choose([target('a', 0, 'silent'), target('b', 10)])).toBeUndefined();
  });

  it('takes the silent target with the fewest requests when none is healthy, and never one that is down', () => {
    const silent = [target('a', 2, 'silent'), target('b', 1, 'silent')];
    expect(choose([target('c', 0, 'down'), ...silent])).toBe('b');
    expect(choose([target('a', 10, 'silent')])).toBeUndefined();
  });

  it('never takes a full target', () => {
    expect(choose([target('a', 9)])).toBe('a');
    expect(choose([target('a', 10)])).toBeUndefined();
  });

  it('gives equally loaded targets the same chance', () => {
    const targets = [target('a'), target('b'), target('c')];
    const counts = { a: 0, b: 0, c: 0 } as Record<string, number>;
    for (let i = 0; i < 3_000; i++) {
      const name = chooseTarget({
        targets,
        loadOf: ({ inFlight }) => inFlight,
        hasRoom,
        avoid: undefined,
        random: Math.random,
      })?.name;
      counts[name ?? ''] = (counts[name ?? ''] ?? 0) + 1;
    }
    for (const count of Object.values(counts)) expect(count).toBeGreaterThan(850);
  });

  it('avoids the target that failed unless it is the only target', () => {
    const failed = target('failed');
    expect(choose([failed, target('busy', 9)], { avoid: failed })).toBe('busy');
    expect(choose([failed, target('sick', 0, 'silent')], { avoid: failed })).toBe('failed');
    expect(choose([target('sick', 0, 'down')], { avoid: failed })).toBeUndefined();
  });
});
