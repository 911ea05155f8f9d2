import type { Socket } from 'node:net';
import type { AtTurnEnd } from '../../../shared/event-loop-batch.ts';
import type { Bounds } from '../../../shared/timeouts-and-sizes.ts';
import type { OpenTunnel, UpgradeRequest } from '../forward-types.ts';
import type { Target } from '../upstream/targets.ts';
import { OctetTurns } from './octet-turns.ts';

export interface Tunnels {
  /** Whether the key may open one more. */
  hasRoom(holder: string): boolean;
  /** Counts a client's connection, from its handshake until it closes. */
  count(socket: Socket, by: { readonly target: Target; readonly holder: string }): void;
  /**
   * The target has switched protocols: copies octets both ways. Closes the tunnel when it idles, and when the gateway drains.
   */
  open(socket: Socket, targetSocket: Socket, by: Pick<UpgradeRequest, 'holder' | 'opener'>): void;
  opened(): readonly OpenTunnel[];
  /** Closes open tunnels gently and refuses further ones. */
  drain(): void;
  isDraining(): boolean;
  /** Closes all counted connections at once. */
  close(): void;
}

/** Counts WebSockets apart from requests, because they last for hours and idle ones would use up the connections. */
export function createTunnels(bounds: Bounds, atTurnEnd: AtTurnEnd): Tunnels {
  const counted = new Set<Socket>();
  const countByHolder = new Map<string, number>();
  /** The open tunnels by the client's socket. Tunnels that the gateway is closing are not among them. */
  const opened = new Map<Socket, OpenTunnel>();
  const octets = new OctetTurns(bounds.tunnelBytesPerTurnMax, atTurnEnd);
  let draining = false;

  function forget(socket: Socket, target: Target, holder: string): void {
    counted.delete(socket);
    opened.delete(socket);
    target.tunnelPlaces.give(holder, 1);
    const count = (countByHolder.get(holder) ?? 1) - 1;
    if (count === 0) countByHolder.delete(holder);
    else countByHolder.set(holder, count);
  }

  /** Ends the target's side first: its last octets still reach the client, and then the client's side ends. */
  function endGently(socket: Socket, targetSocket: Socket, dropInput: () => void): boolean {
    if (!opened.delete(socket)) return false;
    dropInput();
    targetSocket.end();
    destroySoon(socket);
    return true;
  }

  /** The target has closed its side. The client has as long to read the rest as for any response, and then closes too. */
  function endClient(socket: Socket, dropInput: () => void): void {
    dropInput();
    socket.setTimeout(bounds.writeTimeoutMs);
    socket.end(() => socket.destroyed || destroySoon(socket));
  }

  function destroySoon(socket: Socket): void {
    const timer = setTimeout(() => socket.destroy(), bounds.lingerTimeoutMs);
    socket.once('close', () => clearTimeout(timer));
  }

  return {
    hasRoom: (holder) => (countByHolder.get(holder) ?? 0) < bounds.tunnelsPerKeyMax,
    count(socket, { target, holder }) {
      counted.add(socket);
      target.tunnelPlaces.take(holder, 1);
      countByHolder.set(holder, (countByHolder.get(holder) ?? 0) + 1);
      socket.once('close', () => forget(socket, target, holder));
    },
    open(socket, targetSocket, { holder, opener }) {
      octets.relay({ holder, from: targetSocket, to: socket });
      // The client's octets are read to the end. Unread octets would turn our close into a reset, and hide the client's close.
      const dropInput = octets.relay({ holder, from: socket, to: targetSocket });
      opened.set(socket, { opener, end: () => endGently(socket, targetSocket, dropInput) });
      // Octets of both directions pass through the client's socket, so its timeout sees when neither side moves any.
      socket.setTimeout(bounds.tunnelIdleTimeoutMs, () => socket.destroy());
      socket.once('close', () => targetSocket.destroy());
      targetSocket.once('close', () => endClient(socket, dropInput));
    },
    opened: () => [...opened.values()],
    drain() {
      draining = true;
      for (const tunnel of opened.values()) tunnel.end();
    },
    isDraining: () => draining,
    close() {
      for (const socket of counted) socket.destroy();
    },
  };
}
