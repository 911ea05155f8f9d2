import type { Socket } from 'node:net';
import type { Bounds, Target } from '../upstream/targets.ts';

export interface Tunnels {
  /** Whether the key may open one more. */
  hasRoom(holder: string): boolean;
  /** Counts a client, from its handshake until its connection closes. */
  hold(socket: Socket, place: { readonly target: Target; readonly holder: string }): void;
  /** The backend switched: from now on the tunnel is cut when it idles, and ended by a drain. */
  open(socket: Socket, targetSocket: Socket): void;
  /** Ends open tunnels gently; no other may open. */
  drain(): void;
  isDraining(): boolean;
  /** Cuts all clients that are held. */
  close(): void;
}

/** Keeps count of WebSockets, apart from requests: they last for hours, and idle ones would use up HTTP's room. */
export function createTunnels(bounds: Bounds): Tunnels {
  const held = new Set<Socket>();
  const countByHolder = new Map<string, number>();
  /** Client's side to backend's side. */
  const joined = new Map<Socket, Socket>();
  let draining = false;

  function release(socket: Socket, target: Target, holder: string): void {
    held.delete(socket);
    joined.delete(socket);
    target.tunnels--;
    const count = (countByHolder.get(holder) ?? 1) - 1;
    if (count === 0) countByHolder.delete(holder);
    else countByHolder.set(holder, count);
  }

  /** The backend hears the end and closes, its last bytes reach the client, then the client hears it too. */
  function endGently(socket: Socket, targetSocket: Socket): void {
    socket.unpipe(targetSocket);
    // What the client still sends is thrown away: left unread, it would make the close a reset.
    socket.resume();
    targetSocket.end();
    const timer = setTimeout(() => socket.destroy(), bounds.lingerTimeoutMs);
    socket.once('close', () => clearTimeout(timer));
  }

  return {
    hasRoom: (holder) => (countByHolder.get(holder) ?? 0) < bounds.tunnelsPerKeyMax,
    hold(socket, { target, holder }) {
      held.add(socket);
      target.tunnels++;
      countByHolder.set(holder, (countByHolder.get(holder) ?? 0) + 1);
      socket.once('close', () => release(socket, target, holder));
    },
    open(socket, targetSocket) {
      joined.set(socket, targetSocket);
      // Bytes of either direction pass through the client's socket, and a side that stops reading stops them there.
      socket.setTimeout(bounds.tunnelIdleTimeoutMs, () => socket.destroy());
      socket.once('close', () => targetSocket.destroy());
    },
    drain() {
      draining = true;
      for (const [socket, targetSocket] of joined) endGently(socket, targetSocket);
    },
    isDraining: () => draining,
    close() {
      for (const socket of held) socket.destroy();
    },
  };
}
