import type { Socket } from 'node:net';
import type { AtTurnEnd } from '../../../shared/event-loop-batch.ts';
import type { Bounds } from '../../../shared/timeouts-and-sizes.ts';
import type { OpenTunnel, UpgradeRequest } from '../forward-types.ts';
import type { Target } from '../upstream/targets.ts';
import { OctetTurns } from './octet-turns.ts';

/** Counts open WebSockets, separately from requests. WebSockets last for hours and would use up the connections that requests need. */
export class Tunnels {
  private readonly bounds: Bounds;
  private readonly octets: OctetTurns;
  private readonly counted = new Set<Socket>();
  private readonly countByHolder = new Map<string, number>();
  /** The open tunnels, indexed by the client's socket. Tunnels that the gateway is closing are not included. */
  private readonly byClient = new Map<Socket, OpenTunnel>();
  private draining = false;

  constructor(bounds: Bounds, atTurnEnd: AtTurnEnd) {
    this.bounds = bounds;
    this.octets = new OctetTurns(bounds.tunnelBytesPerTurnMax, atTurnEnd);
  }

  hasRoom(holder: string): boolean {
    return (this.countByHolder.get(holder) ?? 0) < this.bounds.tunnelsPerKeyMax;
  }

  /** Counts a client's WebSocket from its handshake until the connection closes. */
  count(socket: Socket, { target, holder }: { readonly target: Target; readonly holder: string }): void {
    this.counted.add(socket);
    target.tunnelPlaces.take(holder, 1);
    this.countByHolder.set(holder, (this.countByHolder.get(holder) ?? 0) + 1);
    socket.once('close', () => this.forget(socket, target, holder));
  }

  /** Starts to copy octets in both directions after a 101. Closes the tunnel when it is idle or the gateway stops. */
  open(
    socket: Socket,
    targetSocket: Socket,
    { holder, opener }: Pick<UpgradeRequest, 'holder' | 'opener'>,
  ): void {
    this.octets.relay({ holder, from: targetSocket, to: socket });
    // The gateway always reads the client's octets. Unread octets would turn a close by the gateway into a reset, and would hide a close
    // by the client.
    const dropInput = this.octets.relay({ holder, from: socket, to: targetSocket });
    this.byClient.set(socket, { opener, end: () => this.endGently(socket, targetSocket, dropInput) });
    // Octets of both directions pass through the client's socket, so the timeout of this socket covers both directions.
    socket.setTimeout(this.bounds.tunnelIdleTimeoutMs, () => socket.destroy());
    socket.once('end', () => this.endGently(socket, targetSocket, dropInput));
    socket.once('close', () => targetSocket.destroy());
    targetSocket.once('close', () => this.endClient(socket, dropInput));
  }

  opened(): readonly OpenTunnel[] {
    return [...this.byClient.values()];
  }

  /** Closes open tunnels gently and refuses new tunnels. */
  drain(): void {
    this.draining = true;
    for (const tunnel of this.byClient.values()) tunnel.end();
  }

  isDraining(): boolean {
    return this.draining;
  }

  /** Closes all counted connections immediately. */
  close(): void {
    for (const socket of this.counted) socket.destroy();
  }

  private forget(socket: Socket, target: Target, holder: string): void {
    this.counted.delete(socket);
    this.byClient.delete(socket);
    target.tunnelPlaces.give(holder, 1);
    const count = (this.countByHolder.get(holder) ?? 1) - 1;
    if (count === 0) this.countByHolder.delete(holder);
    else this.countByHolder.set(holder, count);
  }

  /**
   * Ends the connection to the target first, so that the client still receives the target's last octets. Also called when the client has
   * ended its side, because the target may never close its own side.
   */
  private endGently(socket: Socket, targetSocket: Socket, dropInput: () => void): boolean {
    if (!this.byClient.delete(socket)) return false;
    dropInput();
    targetSocket.end();
    this.destroySoon(socket);
    return true;
  }

  /** Called when the target has closed its connection. The client must read the remaining octets within the usual write timeout. */
  private endClient(socket: Socket, dropInput: () => void): void {
    dropInput();
    socket.setTimeout(this.bounds.writeTimeoutMs);
    socket.end(() => socket.destroyed || this.destroySoon(socket));
  }

  private destroySoon(socket: Socket): void {
    const timer = setTimeout(() => socket.destroy(), this.bounds.lingerTimeoutMs);
    socket.once('close', () => clearTimeout(timer));
  }
}
