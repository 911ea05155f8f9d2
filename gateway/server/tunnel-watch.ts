import { setImmediate as nextTurn } from 'node:timers/promises';
import type { Logger } from 'pino';
import type { Caller } from '../request/authenticate/authenticate-key.ts';
import { authenticateRequest, type KeyReader, type Presented } from '../request/authenticate-request.ts';
import type { Forwarder, OpenTunnel } from '../request/forward/forwarder.ts';
import { mayCall } from '../request/route/operation-table.ts';
import type { KnownKey, Snapshot } from '../request/snapshot.ts';
import type { Operation } from '../shared/model.ts';
import type { Bounds } from '../shared/timeouts-and-sizes.ts';

/**
 * Closes open WebSockets whose secret is no longer valid, or whose key may no longer call their operation. A request is looked
 * at when it arrives; a WebSocket would outlive its key for as long as both sides please.
 */
export interface TunnelWatch {
  /** Looks at all of them now: the configuration has changed. */
  check(): void;
  close(): void;
}

type CallerOf = (tunnel: OpenTunnel) => Caller<KnownKey> | Promise<Caller<KnownKey>>;

export function createTunnelWatch({
  forwarder,
  snapshot,
  reader,
  log,
  bounds,
}: {
  readonly forwarder: Pick<Forwarder, 'openTunnels'>;
  /** The configuration in force. */
  readonly snapshot: () => Snapshot;
  readonly reader: KeyReader;
  readonly log: Logger;
  readonly bounds: Pick<
    Bounds,
    'tunnelCheckIntervalMs' | 'tunnelReadIntervalMs' | 'tunnelsCheckedPerTurn' | 'tunnelsReadAtOnce'
  >;
}): TunnelWatch {
  // By what this process has in memory, so that an expiry or a reload does not wait for Redis.
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

  /** A few at once: many WebSockets make this take longer, and nobody's request wait. */
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
      log.error({ err: bug, requestId }, 'a bug in the look at open WebSockets');
    }
  }

  /** @param reads of keys by their ids, so that each is read once; this one's is added */
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
    return snapshot().authenticate(opener.authorization, reader.nowMs());
  }

  /** While it runs, further calls make it run once more. */
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
    check() {
      check();
      // A secret that has left the configuration may be the directory's by now.
      read();
    },
    close() {
      for (const timer of timers) clearInterval(timer);
    },
  };
}

/** Without an answer of the directory it stays open, as a key that was read before stays valid for a while. */
function reasonToClose(caller: Caller<KnownKey>, operation: Operation): string | undefined {
  switch (caller.kind) {
    case 'unread':
      return undefined;
    case 'refused':
      return caller.code === 'invalid_key' ? caller.presented.status : caller.code;
    case 'authenticated':
      return mayCall(caller.key, operation) ? undefined : 'operation_not_allowed';
  }
}
