import type { AtTurnEnd } from '../../shared/event-loop-batch.ts';
import { FairQueue } from '../../shared/structures/fair-queue.ts';
import { Shares } from '../../shared/structures/shares.ts';
import type { Bounds } from '../../shared/timeouts-and-sizes.ts';
import { type ConnectionOwner, TargetConnection } from './target-connection.ts';
import type { ResponseHandler, TargetRequest, TransportFailure } from './target-request.ts';
import type { TargetTls } from './target-tls.ts';

interface ConnectionPoolOptions {
  readonly host: string;
  readonly port: number;
  /** The TLS options; undefined for an `http` upstream. */
  readonly tls?: TargetTls | undefined;
  readonly bounds: Bounds;
  readonly atTurnEnd: AtTurnEnd;
}

interface PendingRequest {
  readonly request: TargetRequest;
  readonly handler: ResponseHandler;
}

/**
 * The kept-alive HTTP/1.1 connections to one target, and the queue of requests that wait for a connection.
 *
 * A request needs a slot, and waits in the queue until it gets a slot. There are as many slots as connections. Keys ("holders") share the
 * slots, so that no key can take all connections. A request that has a slot gets a connection at the end of a turn of the event loop. A
 * reused connection must have been idle during the whole turn. A connection that receives unexpected octets or a FIN during this turn is
 * closed before a request can take it. Octets of one key's response therefore never become part of another key's response.
 */
export class ConnectionPool implements ConnectionOwner {
  private readonly options: ConnectionPoolOptions;
  private readonly connections = new Set<TargetConnection>();
  /** The slots, divided among holders. */
  private readonly slots: Shares;
  /** The places in the queue, divided among holders. */
  private readonly queuePlaces: Shares;
  private readonly queue = new FairQueue<PendingRequest>();
  /** Requests that have a slot and wait for the end of this turn, or for a new connection. */
  private readonly ready: PendingRequest[] = [];
  /**
   * New connections, and connections that were idle for at least one turn. The connection that became idle last is used first, so unneeded
   * connections reach their idle timeout.
   */
  private readonly idle: TargetConnection[] = [];
  /** Connections that became idle in this turn. */
  private freed: TargetConnection[] = [];
  private readonly sweep: NodeJS.Timeout;
  private connecting = 0;
  /** The last result of `holdersInTheirOwnWay`. */
  private inTheirOwnWay: { readonly atMs: number; readonly holders: ReadonlySet<string> } | undefined;
  private isTurnEndAwaited = false;
  private isClosing = false;
  private readonly closed = Promise.withResolvers<void>();

  constructor(options: ConnectionPoolOptions) {
    this.options = options;
    const { connectionsPerTargetMax, queuedPerTargetMax, sweepIntervalMs } = options.bounds;
    this.slots = new Shares(connectionsPerTargetMax);
    this.queuePlaces = new Shares(queuedPerTargetMax);
    // After SIGSTOP or another long pause of the process, the timer fires before Node reads pending data. `setImmediate` lets Node read the
    // pending data first. `expire` gets the time at which the timer fired, because the process may pause again before `setImmediate` runs.
    const expire = (nowMs: number) => {
      for (const connection of this.connections) connection.expire(nowMs);
    };
    this.sweep = setInterval(() => setImmediate(expire, performance.now()), sweepIntervalMs);
    this.sweep.unref();
  }

  /** Whether a request of this holder would get a slot or a place in the queue. */
  hasRoom(holder: string): boolean {
    return this.mayHaveSlot(holder) || this.queuePlaces.mayTake(holder, 1);
  }

  isFull(): boolean {
    return this.slots.free === 0;
  }

  /**
   * Returns the holders of which most connections wait for clients, which read their responses or send their bodies slowly. Further requests
   * of such a holder wait for its own clients, and not for the target.
   *
   * @param nowMs the time of a check of many requests, for which the result is made once
   */
  holdersInTheirOwnWay(nowMs: number): ReadonlySet<string> {
    if (this.inTheirOwnWay?.atMs === nowMs) return this.inTheirOwnWay.holders;
    const uses = [...this.connections].flatMap((connection) => connection.use() ?? []);
    const byHolder = Map.groupBy(uses, ({ holder }) => holder);
    const most = [...byHolder].filter(
      ([, held]) => 2 * held.filter(({ awaitsClient }) => awaitsClient).length > held.length,
    );
    const holders = new Set(most.map(([holder]) => holder));
    this.inTheirOwnWay = { atMs: nowMs, holders };
    return holders;
  }

  /** Sends a request as soon as a connection is free. The handler receives the response or the failure. */
  send(request: TargetRequest, handler: ResponseHandler): void {
    const { holder } = request;
    if (this.isClosing) {
      handler.onFailure(closedFailure);
    } else if (this.mayHaveSlot(holder)) {
      this.giveSlot({ request, handler });
    } else if (this.queuePlaces.take(holder, 1)) {
      this.queue.push(holder, { request, handler });
    } else {
      handler.onFailure(fullFailure);
    }
  }

  /** Removes a request that waits for a connection. The request's handler is not called again. */
  withdraw(request: TargetRequest, handler: ResponseHandler): void {
    const { holder } = request;
    const index = this.ready.findIndex((each) => each.handler === handler);
    if (index >= 0) {
      this.ready.splice(index, 1);
      this.slots.give(holder, 1);
    } else if (this.queue.remove(holder, (each) => each.handler === handler)) {
      this.queuePlaces.give(holder, 1);
    }
    this.giveSlotsToQueued();
    this.closeIfEmpty();
  }

  /** Refuses further requests, serves the current and waiting requests, then closes all connections. */
  close(): Promise<void> {
    this.isClosing = true;
    this.awaitTurnEnd();
    this.closeIfEmpty();
    return this.closed.promise;
  }

  /** Closes all connections immediately. Current and waiting requests fail. */
  destroy(): Promise<void> {
    this.isClosing = true;
    const waiting = [...this.ready.splice(0), ...this.queue.drain()];
    for (const { handler } of waiting) handler.onFailure(closedFailure);
    for (const connection of this.connections) connection.close();
    this.closeIfEmpty();
    return this.closed.promise;
  }

  /** Called by a new connection. A new connection may serve a request at the end of the same turn. */
  onConnected(connection: TargetConnection): void {
    this.connecting--;
    this.idle.push(connection);
    this.awaitTurnEnd();
  }

  /** Called by a connection whose request was answered or failed. */
  onRequestOver(holder: string): void {
    this.slots.give(holder, 1);
    this.giveSlotsToQueued();
  }

  /** Called by a connection that may serve a further request. */
  onFree(connection: TargetConnection): void {
    this.freed.push(connection);
    this.awaitTurnEnd();
  }

  /** Called by a closed connection. If the connection could not be established, the request that has waited longest fails. */
  onClosed(connection: TargetConnection, failure: TransportFailure | undefined): void {
    this.connections.delete(connection);
    removeFrom(this.idle, connection);
    removeFrom(this.freed, connection);
    if (failure !== undefined) {
      this.connecting--;
      const pending = this.ready.shift();
      if (pending !== undefined) {
        this.onRequestOver(pending.request.holder);
        pending.handler.onFailure(failure);
      }
    }
    if (this.ready.length > 0) this.awaitTurnEnd();
    this.closeIfEmpty();
  }

  /** A holder with a quarter of the slots gets no further slot while other holders wait. */
  private mayHaveSlot(holder: string): boolean {
    if (!this.slots.mayTake(holder, 1)) return false;
    const quarter = this.options.bounds.connectionsPerTargetMax / 4;
    return this.slots.heldBy(holder) < quarter || !this.queue.hasOthers(holder);
  }

  private giveSlot(pending: PendingRequest): void {
    this.slots.take(pending.request.holder, 1);
    this.ready.push(pending);
    this.awaitTurnEnd();
  }

  private giveSlotsToQueued(): void {
    while (this.queue.length > 0) {
      const pending = this.queue.shift((holder) => this.mayHaveSlot(holder));
      if (pending === undefined) return;
      this.queuePlaces.give(pending.request.holder, 1);
      this.giveSlot(pending);
    }
  }

  private awaitTurnEnd(): void {
    if (this.isTurnEndAwaited) return;
    this.isTurnEndAwaited = true;
    this.options.atTurnEnd(() => this.endTurn());
  }

  private endTurn(): void {
    this.isTurnEndAwaited = false;
    this.sendReady();
    this.connectForReady();
    const { freed } = this;
    this.freed = [];
    this.idle.push(...freed);
    if (this.ready.length === 0 && this.isClosing) for (const connection of this.idle) connection.close();
    if (this.ready.length > 0 && freed.length > 0) this.awaitTurnEnd();
  }

  private sendReady(): void {
    while (this.ready.length > 0) {
      const connection = this.takeIdle();
      if (connection === undefined) return;
      const pending = this.ready.shift();
      if (pending !== undefined) connection.send(pending.request, pending.handler);
    }
  }

  private takeIdle(): TargetConnection | undefined {
    for (let connection = this.idle.pop(); connection !== undefined; connection = this.idle.pop()) {
      if (connection.isUsable()) return connection;
      connection.close();
    }
    return undefined;
  }

  /** Opens connections for waiting requests, unless a new or just freed connection will serve them. */
  private connectForReady(): void {
    const { host, port, tls, bounds } = this.options;
    const { size: already } = this.connections;
    const wanted = this.ready.length - this.connecting - this.freed.length;
    for (let i = 0; i < Math.min(wanted, bounds.connectionsPerTargetMax - already); i++) {
      this.connecting++;
      this.connections.add(new TargetConnection({ host, port, tls, bounds, owner: this }));
    }
  }

  private closeIfEmpty(): void {
    const waiting = this.ready.length + this.queue.length;
    if (!this.isClosing || this.connections.size > 0 || waiting > 0) return;
    clearInterval(this.sweep);
    this.closed.resolve();
  }
}

function removeFrom(list: TargetConnection[], connection: TargetConnection): void {
  const index = list.indexOf(connection);
  if (index >= 0) list.splice(index, 1);
}

const closedFailure: TransportFailure = {
  kind: 'closed',
  reach: 'not_reached',
  cause: 'the pool was closed',
};

const fullFailure: TransportFailure = {
  kind: 'full',
  reach: 'not_reached',
  cause: 'too many requests wait for a connection',
};
