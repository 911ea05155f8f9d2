import { Shares } from '../../../shared/structures/shares.ts';
import type { Bounds } from '../../../shared/timeouts-and-sizes.ts';

/** The room of one report in the memory of this process. */
export interface ReportPlace {
  /** The octets of the body that the place has taken. */
  readonly bytes: number;
  /** Called before the body arrives. If another report takes the room of a slow body, `onLost` is called. */
  begin(onLost: () => void): void;
  /** Takes room for octets that have arrived. @returns false, without a change, when there is no room */
  take(bytes: number): boolean;
  /** Called when the body has arrived, or is not read any more. Afterwards no report takes the room. */
  end(): void;
  /** Gives the room back. Further calls have no effect. */
  leave(): void;
}

/**
 * The memory of this process for the bodies of reports, and the number of reports. Client addresses share both (`shares.ts`).
 *
 * A signature can be verified only when the whole body has arrived, and the identifiers of GitHub's keys are public. Anyone can therefore
 * send bodies that never end. A report that needs room takes the room of bodies that arrive more slowly than
 * `leakBodyBytesPerSecondMin`. Without such a report, a slow body is read until the request times out.
 */
export function createReportRoom({
  leakReportsBytesMax,
  leakReportsMax,
  leakBodyBytesPerSecondMin,
  leakBodyStalledMs,
}: Pick<
  Bounds,
  'leakReportsBytesMax' | 'leakReportsMax' | 'leakBodyBytesPerSecondMin' | 'leakBodyStalledMs'
>) {
  const memory = new Shares(leakReportsBytesMax);
  const places = new Shares(leakReportsMax);
  const arriving = new Set<Arriving>();

  return {
    /** @param holder the group of the client's address. @returns undefined when there is no room for a further report */
    enter(holder: string): ReportPlace | undefined {
      return makeRoom(() => places.take(holder, 1)) ? placeOf(holder) : undefined;
    },
  };

  function placeOf(holder: string): ReportPlace {
    let bytes = 0;
    let body: Arriving | undefined;
    let hasLeft = false;
    return {
      get bytes() {
        return bytes;
      },
      begin(onLost) {
        const lose = () => {
          this.leave();
          onLost();
        };
        body = { lose, slowFromMs: performance.now() + leakBodyStalledMs };
        arriving.add(body);
      },
      take(more) {
        if (hasLeft || !makeRoom(() => memory.take(holder, more), body)) return false;
        bytes += more;
        if (body !== undefined) body.slowFromMs = slowFrom(body, more);
        return true;
      },
      end() {
        if (body !== undefined) arriving.delete(body);
      },
      leave() {
        if (hasLeft) return;
        hasLeft = true;
        this.end();
        memory.give(holder, bytes);
        places.give(holder, 1);
      },
    };
  }

  /** The octets of a body extend the time by their share of the minimum pace. A body that stops is slow after `leakBodyStalledMs`. */
  function slowFrom({ slowFromMs }: Arriving, bytes: number): number {
    const nowMs = performance.now();
    const atMs = Math.max(nowMs, slowFromMs) + (1_000 * bytes) / leakBodyBytesPerSecondMin;
    return Math.min(nowMs + leakBodyStalledMs, atMs);
  }

  /**
   * Takes the room of slow bodies, the oldest first, until `take` succeeds. A body takes only the room of bodies that began before it. Without
   * this rule, the older ones of many bodies that wait for room would take the room of a new report again.
   */
  function makeRoom(take: () => boolean, body?: Arriving): boolean {
    while (!take()) {
      const oldest = oldestSlowBody(body);
      if (oldest === undefined) return false;
      oldest.lose();
    }
    return true;
  }

  function oldestSlowBody(before: Arriving | undefined): Arriving | undefined {
    const nowMs = performance.now();
    // The set has the bodies in the order in which they began.
    for (const body of arriving) {
      if (body === before) return undefined;
      if (body.slowFromMs <= nowMs) return body;
    }
    return undefined;
  }
}

interface Arriving {
  readonly lose: () => void;
  /** The time from which the body counts as slow, unless further octets arrive. */
  slowFromMs: number;
}
