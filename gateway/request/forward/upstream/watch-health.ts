import { hash } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { isLoopback } from '../../../shared/addresses/secure-url.ts';
import type { Upstream } from '../../../shared/model.ts';
import type { Bounds } from '../../../shared/timeouts-and-sizes.ts';
import { type Finding, type Health, healthy } from './check-health.ts';
import { CheckTurns } from './check-turns.ts';
import type { FleetHealth } from './fleet/fleet-health.ts';

/** The health checks that this process shares with other processes. */
export interface SharedChecks {
  readonly fleet: FleetHealth;
  /** The name of this machine. Only processes of one machine share checks of a loopback address. */
  readonly machine: string;
}

interface WatchedHealth {
  readonly url: URL;
  readonly health: Health;
  readonly reason: string | undefined;
  readonly inFlight: number;
  /** Whether a response head has arrived from the target since this was last set to false. */
  hasResponded: boolean;
  /** When a request could not connect to the target, on the clock of `performance.now()`, since this was last set to undefined. */
  unreachableMs: number | undefined;
}

interface WatchOptions {
  readonly target: WatchedHealth;
  readonly upstream: Upstream;
  /** The value of `Host` in checks; undefined to send the target's address. */
  readonly host: string | undefined;
  readonly check: () => Promise<Finding>;
  readonly setHealth: (finding: Finding) => void;
  /** Undefined without Redis. */
  readonly shared: SharedChecks | undefined;
  readonly bounds: Bounds;
  readonly random: () => number;
  readonly stop: AbortSignal;
}

/** Watches the health of one target until `stop`. `README.md` states what counts as evidence, and when a target is checked. */
export async function watchHealth(options: WatchOptions): Promise<void> {
  const { target, upstream, host, check, setHealth, shared, bounds, random, stop } = options;
  const turns = new CheckTurns(bounds, random);
  const sharedTarget = shared?.fleet.join(
    identityOf(target.url, upstream, host, shared.machine),
    (opinion) => {
      if (stop.aborted) return;
      if (opinion === undefined) setHealth(healthy);
      else if (target.health === 'healthy') setHealth(opinion);
    },
  );
  let hasJustResponded = false;
  let checkers = 1;
  /** Whether the target is down because a request or a check could not connect. The next request would reveal this failure again. */
  let isEjected = false;
  /**
   * Whether a passed check of another process may end an ejection. Such a check ends only the first ejection after a passed check of this
   * process. Requests of a process with a broken network therefore try the target only once more.
   */
  let mayRelyOnFleet = true;
  do {
    followEjection();
    hasJustResponded = target.hasResponded;
    target.hasResponded = false;
    checkers = sharedTarget?.checkers() ?? 1;
    const isWaiting = target.inFlight > 0 && !hasJustResponded;
    const isSuspect = isWaiting || target.health !== 'healthy' || sharedTarget?.opinion() !== undefined;
    if (turns.isDue({ nowMs: performance.now(), checkers, isSuspect })) await examine();
  } while (await pauseFor(turns.pauseMs(checkers), stop));
  sharedTarget?.leave();

  /**
   * Reports that a request could not connect, and ends the ejection after a later passed check of another process. After a short restart of
   * a target, many processes have ejected it, and their own checks would take turns for seconds.
   */
  function followEjection(): void {
    const { unreachableMs, reason } = target;
    target.unreachableMs = undefined;
    if (target.health === 'healthy') isEjected = false;
    else if (unreachableMs !== undefined) {
      isEjected = true;
      sharedTarget?.report({ health: 'down', reason, atMs: unreachableMs });
    } else if (isEjected && mayRelyOnFleet && sharedTarget?.hasPassedSince()) {
      isEjected = false;
      mayRelyOnFleet = false;
      setHealth(healthy);
    }
  }

  async function examine(): Promise<void> {
    let finding = await find();
    // A failed check of a healthy target is repeated immediately, because one check may fail while this process is busy.
    if (finding.health !== 'healthy' && target.health === 'healthy') finding = await find();
    // A target that was down and is now silent has not recovered, so its health remains `down`.
    if (!stop.aborted && (finding.health !== 'silent' || target.health !== 'down')) setHealth(finding);
    isEjected = finding.isUnreachable === true || (isEjected && finding.health === 'down');
    if (finding.health === 'healthy') mayRelyOnFleet = true;
  }

  async function find(): Promise<Finding> {
    const beganMs = performance.now();
    const isProvenByResponse =
      upstream.health === undefined && target.health === 'healthy' && hasJustResponded;
    const finding = isProvenByResponse ? healthy : await check();
    const endedMs = performance.now();
    // If the timeout fired far too late, this process was paused or lacked CPU time. Such a result proves nothing to other processes.
    const isReliable = endedMs - beganMs < 1.5 * bounds.healthTimeoutMs;
    const isHealthy = finding.health === 'healthy';
    if (!stop.aborted && (isHealthy || isReliable))
      sharedTarget?.report({ ...finding, atMs: isHealthy ? endedMs : beganMs });
    return finding;
  }
}

/** A digest that is equal in all processes that check the same address in the same way. */
function identityOf(url: URL, upstream: Upstream, host: string | undefined, machine: string): string {
  const { tls, health } = upstream;
  const place = isLoopback(url.hostname) ? [machine, url.href] : [url.href];
  const verified = url.protocol === 'https:' && [
    new URL(upstream.url).hostname,
    tls?.serverName,
    tls?.ca,
    tls?.clientCertificate?.cert,
  ];
  const text = JSON.stringify([place, health, host, verified]);
  return hash('sha256', text, 'base64url').slice(0, 16);
}

/** Waits without keeping the process alive. @returns false when the signal was aborted during the wait */
export function pauseFor(ms: number, signal: AbortSignal): Promise<boolean> {
  return sleep(ms, true, { ref: false, signal }).catch(() => false);
}
