import type { Socket } from 'node:net';
import type { AtTurnEnd } from '../../../shared/event-loop-batch.ts';
import type { Bounds } from '../../../shared/timeouts-and-sizes.ts';
import type { OpenTunnel, UpgradeRequest } from '../forward-types.ts';
import type { Target } from '../upstream/targets.ts';
import { OctetTurns } from './octet-turns.ts';

/** Counts WebSockets apart from requests, because they last for hours and idle ones would use up the connections. */
export class Tunnels {
  private readonly bounds: Bounds;
  private readonly octets: OctetTurns;
  private readonly counted = new Set<Socket>();
  private readonly countByHolder = new Map<string, number>();
  /** The open tunnels by the client's socket. Tunnels that the gateway is closing are not among them. */
  private readonly byClient = new Map<Socket, OpenTunnel>();
  private draining = false;

  constructor(bounds: Bounds, atTurnEnd: AtTurnEnd) {
    this.bounds = bounds;
    this.octets = new OctetTurns(bounds.tunnelBytesPerTurnMax, atTurnEnd);
  }

  /** Whether the key may open one more. */
  hasRoom(holder: string): boolean {
    return (this.countByHolder.get(holder) ?? 0) < this.bounds.tunnelsPerKeyMax;
  }

  /** Counts a client's connection, from its handshake until it closes. */
  count(socket: Socket, { target, holder }: { readonly target: Target; readonly holder: string }): void {
    this.counted.add(socket);
    target.tunnelPlaces.take(holder, 1);
    this.countByHolder.set(holder, (this.countByHolder.get(holder) ?? 0) + 1);
    socket.once('close', () => this.forget(socket, target, holder));
  }

  /** The target has switched protocols: copies octets both ways. Closes the tunnel when it idles, and when the gateway drains. */
  open(
    socket: Socket,
    targetSocket: Socket,
    { holder, opener }: Pick<UpgradeRequest, 'holder' | 'opener'>,
  ): void {
    this.octets.relay({ holder, from: targetSocket, to: socket });
    // The client's octets are read to the end. Unread octets would turn our close into a reset, and hide the client's close.
    const dropInput = this.octets.relay({ holder, from: socket, to: targetSocket });
    this.byClient.set(socket, { opener, end: () => this.endGently(socket, targetSocket, dropInput) });
    // Octets of both directions pass through the client's socket, so its timeout sees when neither side moves any.
    socket.setTimeout(this.bounds.tunnelIdleTimeoutMs, () => socket.destroy());
    socket.once('close', () => targetSocket.destroy());
    targetSocket.once('close', () => this.endClient(socket, dropInput));
  }

  opened(): readonly OpenTunnel[] {
    return [...this.byClient.values()];
  }

  /** Closes open tunnels gently and refuses further ones. */
  drain(): void {
    this.draining = true;
    for (const tunnel of this.byClient.values()) tunnel.end();
  }

  isDraining(): boolean {
    return this.draining;
  }

  /** Closes all counted connections at once. */
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

  /** Ends the target's side first, so that its last octets still reach the client. Then the client's side ends. */
  private endGently(socket: Socket, targetSocket: Socket, dropInput: () => void): boolean {
    if (!this.byClient.delete(socket)) return false;
    dropInput();
    targetSocket.end();
    this.destroySoon(socket);
    return true;
  }

  /** The target has closed its side. The client has as long to read the rest as for any response, and then closes too. */
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
