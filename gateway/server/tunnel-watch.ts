import { setImmediate as nextTurn } from 'node:timers/promises';
import type { Logger } from 'pino';
import type { Caller } from '../request/authenticate/authenticate-key.ts';
import type { OpenTunnel } from '../request/forward/forward-types.ts';
import type { Forwarder } from '../request/forward/forwarder.ts';
import { authenticateRequest, type KeyReader, type Presented } from '../request/path/authenticate-request.ts';
import { mayCall } from '../request/route/operation-table.ts';
import type { KnownKey, Snapshot } from '../request/snapshot.ts';
import type { Operation } from '../shared/model.ts';
import type { Bounds } from '../shared/timeouts-and-sizes.ts';

type CallerOf = (tunnel: OpenTunnel) => Caller<KnownKey> | Promise<Caller<KnownKey>>;

/**
 * Closes open WebSockets whose secret is no longer valid, or whose key no longer allows the client's address or the WebSocket's operation.
 * Without these checks, a WebSocket would stay open after its key became invalid, until the client or the upstream closes it.
 */
export function createTunnelWatch({
  forwarder,
  snapshot,
  reader,
  log,
  bounds,
}: {
  readonly forwarder: Pick<Forwarder, 'openTunnels'>;
  /** The current configuration. */
  readonly snapshot: () => Snapshot;
  readonly reader: KeyReader;
  readonly log: Logger;
  readonly bounds: Bounds;
}) {
  // This check uses the process's memory, so that an expiry or a reload does not wait for Redis.
  const check = oneAtATime(() => judgeAll(bounds.tunnelsCheckedPerTurn, heldCaller));
  const read = oneAtATime(async () => {
    if (reader.directory === undefined) return;
    const reads = new Map<string, Promise<void>>();
    await judgeAll(bounds.tunnelsReadAtOnce, (tunnel) => readCaller(tunnel, reads));
  });
  const timers = [
    setInterval(check, bounds.tunnelCheckIntervalMs).unref(),
    setInterval(read, bounds.tunnelReadIntervalMs).unref(),
  ];

  /** Checks a few WebSockets per turn of the event loop, so that many WebSockets do not delay requests. */
  async function judgeAll(atOnce: number, callerOf: CallerOf): Promise<void> {
    const tunnels = forwarder.openTunnels();
    for (let next = 0; next < tunnels.length; next += atOnce) {
      await nextTurn();
      await Promise.all(tunnels.slice(next, next + atOnce).map((tunnel) => judge(tunnel, callerOf)));
    }
  }

  async function judge(tunnel: OpenTunnel, callerOf: CallerOf): Promise<void> {
    const { requestId, keyId, operation } = tunnel.opener;
    try {
      const reason = reasonToClose(await callerOf(tunnel), operation);
      if (reason === undefined || !tunnel.end()) return;
      log.info({ requestId, keyId, operation: operation.id, reason }, 'a WebSocket is closed with its key');
    } catch (bug) {
      log.error({ err: bug, requestId }, 'a bug in the check of open WebSockets');
    }
  }

  /** @param reads the reads of this check by key id, so that each key is read once */
  async function readCaller(
    tunnel: OpenTunnel,
    reads: Map<string, Promise<void>>,
  ): Promise<Caller<KnownKey>> {
    const held = heldCaller(tunnel);
    if (held.kind === 'authenticated' && held.key.generation !== undefined) {
      const { id } = held.key;
      const reading = reads.get(id) ?? reader.directory?.readAgain(id) ?? Promise.resolve();
      reads.set(id, reading);
      await reading;
    }
    return authenticateRequest(presentedFor(tunnel), reader);
  }

  function presentedFor({ opener: { authorization, address } }: OpenTunnel): Presented {
    return { snapshot: snapshot(), authorization, address };
  }

  function heldCaller({ opener }: OpenTunnel): Caller<KnownKey> {
    return snapshot().authenticate(opener, reader.nowMs());
  }

  /** Only one run is active at a time. A call during a run starts one more run after the current run. */
  function oneAtATime(run: () => Promise<void>): () => void {
    let running = false;
    let wanted = false;
    return async () => {
      wanted = true;
      if (running) return;
      running = true;
      while (wanted) {
        wanted = false;
        await run();
      }
      running = false;
    };
  }

  return {
    /** Checks all WebSockets immediately. Call this after a change of the configuration. */
    check() {
      check();
      // A secret that was removed from the configuration may now be in the directory.
      read();
    },
    close() {
      for (const timer of timers) clearInterval(timer);
    },
  };
}

/** A WebSocket stays open while the directory does not reply, just as a cached key stays valid for a while. */
function reasonToClose(caller: Caller<KnownKey>, operation: Operation): string | undefined {
  switch (caller.kind) {
    case 'unread':
      return undefined;
    case 'refused':
      return caller.code === 'missing_key' ? caller.code : caller.presented.status;
    case 'authenticated':
      return mayCall(caller.key, operation) ? undefined : 'operation_not_allowed';
  }
}
