import { isSameLimit } from '../shared/limits.ts';
import type { Grant, Limit, Limits } from '../shared/model.ts';
import { fieldOf, windowOf } from './windows.ts';

/** A running or future grant; undefined for an ended grant. */
export function unendedGrant(grant: Grant | undefined, nowMs: number): Grant | undefined {
  return grant !== undefined && nowMs < grant.untilMs ? grant : undefined;
}

export function isRunning(grant: Grant | undefined, nowMs: number): grant is Grant {
  return grant !== undefined && nowMs >= (grant.fromMs ?? 0) && nowMs < grant.untilMs;
}

/** A running grant replaces the limits of its windows, except limits of Infinity. */
export function applyGrant(limits: Limits, grant: Grant | undefined, nowMs: number): Limits {
  if (!isRunning(grant, nowMs)) return limits;
  return limits.map((limit) => {
    const granted = grant.limits.find((one) => isSameLimit(one, limit));
    return granted === undefined || limit.max === Number.POSITIVE_INFINITY
      ? limit
      : { ...limit, max: granted.max };
  });
}

/** As operators and key holders see it. A grant that has started has no `fromMs`. */
export function shownGrant(grant: Grant | undefined, nowMs: number): Grant | undefined {
  const unended = unendedGrant(grant, nowMs);
  if (unended?.fromMs === undefined || nowMs < unended.fromMs) return unended;
  const { fromMs: _, ...begun } = unended;
  return begun;
}

/** The hash field (`grants.lua`). An exemption is its name and a 0, which the script ignores. */
export function packGrant({ limits, fromMs, untilMs, exemptions = [] }: Grant): string {
  const from = fromMs === undefined ? [] : ['from', fromMs];
  const exempt = exemptions.flatMap((name) => [name, 0]);
  return [untilMs, ...limits.flatMap((limit) => [fieldOf(limit), limit.max]), ...from, ...exempt].join(' ');
}

export function unpackGrant(packed: string): Grant {
  const [untilMs, ...parts] = packed.split(' ');
  const limits: Limit[] = [];
  const exemptions: string[] = [];
  let fromMs: number | undefined;
  for (let at = 0; at < parts.length; at += 2) {
    const [name = '', value] = [parts[at], Number(parts[at + 1])];
    const window = windowOf(name);
    if (window !== undefined) limits.push({ ...window, max: value });
    else if (name === 'from') fromMs = value;
    else if (value === 0) exemptions.push(name);
  }
  return { limits, fromMs, untilMs: Number(untilMs), ...(exemptions.length > 0 && { exemptions }) };
}
