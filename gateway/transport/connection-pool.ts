import type { AtTurnEnd } from '../event-loop-batch.ts';
import { Shares } from '../shares.ts';
import { FairQueue } from './fair-queue.ts';
import { Connection, type ConnectionBounds, type ConnectionOwner } from './target-connection.ts';
import type { ResponseHandler, TargetRequest, TransportFailure } from './target-request.ts';

export interface PoolBounds extends ConnectionBounds {
  readonly connectionsPerTargetMax: number;
  readonly queuedPerTargetMax: number;
  readonly sweepIntervalMs: number;
}

interface ConnectionPoolOptions {
  readonly host: string;
  readonly port: number;
  readonly bounds: PoolBounds;
  readonly atTurnEnd: AtTurnEnd;
}

interface Asked {
  readonly request: TargetRequest;
  readonly handler: ResponseHandler;
}

/**
 * The kept-alive HTTP/1.1 connections to one address, and the requests that wait for one.
 *
 * A request first needs a place among the connections, shared among holders (keys) so that none can hold them all; then
 * it takes, at the end of a turn of the event loop, a connection that was quiet for that whole turn. Whatever its backend
 * sent unasked, or that it closed it, has been read by then: what is left of one key's answer never begins another's.
 */
export class ConnectionPool implements ConnectionOwner {
  private readonly options: ConnectionPoolOptions;
  private readonly connections = new Set<Connection>();
  /** Who has how many connections, or a place for one that is about to be taken. */
  private readonly places: Shares;
  /** Who has how many places in the queue. */
  private readonly queuePlaces: Shares;
  private readonly queue = new FairQueue<Asked>();
  /** They have a place and take a connection at the end of this turn, or when one is made. */
  private readonly placed: Asked[] = [];
  /** Quiet for at least a turn. The one freed last is taken first, so that those nobody needs grow old and close. */
  private readonly rested: Connection[] = [];
  /** Freed in this turn. */
  private freed: Connection[] = [];
  private readonly sweep: NodeJS.Timeout;
  private connecting = 0;
  private isTurnEndAwaited = false;
  private isClosing = false;
  private readonly closed = Promise.withResolvers<void>();

  constructor(options: ConnectionPoolOptions) {
    this.options = options;
    const { connectionsPerTargetMax, queuedPerTargetMax, sweepIntervalMs } = options.bounds;
    this.places = new Shares(connectionsPerTargetMax);
    this.queuePlaces = new Shares(queuedPerTargetMax);
    // After SIGSTOP or a long pause the timer fires before pending data was read, so the look is one turn later.
    const expire = () => this.expireOverdue();
    this.sweep = setInterval(() => setImmediate(expire), sweepIntervalMs);
    this.sweep.unref();
  }

  /** Whether a request of this holder would be sent or queued. */
  hasRoom(holder: string): boolean {
    return this.mayBePlaced(holder) || this.queuePlaces.mayTake(holder, 1);
  }

  /** Whether every connection that there may be is taken. */
  isFull(): boolean {
    return this.places.free === 0;
  }

  /** Sends a request as soon as a connection is free; the handler hears what comes of it. */
  send(request: TargetRequest, handler: ResponseHandler): void {
    const { holder } = request;
    if (this.isClosing) {
      handler.onFailure(closedFailure);
    } else if (this.mayBePlaced(holder)) {
      this.place({ request, handler });
    } else if (this.queuePlaces.take(holder, 1)) {
      this.queue.push(holder, { request, handler });
    } else {
      handler.onFailure(fullFailure);
    }
  }

  /** Takes a request back that still waits for a connection; the handler hears nothing more of it. */
  withdraw(request: TargetRequest, handler: ResponseHandler): void {
    const { holder } = request;
    const index = this.placed.findIndex((each) => each.handler === handler);
    if (index >= 0) {
      this.placed.splice(index, 1);
      this.places.give(holder, 1);
    } else if (this.queue.remove(holder, (each) => each.handler === handler)) {
      this.queuePlaces.give(holder, 1);
    }
    this.placeQueued();
    this.closeIfEmpty();
  }

  /** Requests under way and waiting are served, then the connections are closed. */
  close(): Promise<void> {
    this.isClosing = true;
    this.awaitTurnEnd();
    this.closeIfEmpty();
    return this.closed.promise;
  }

  /** The same at once: what is under way fails. */
  destroy(): Promise<void> {
    this.isClosing = true;
    const waiting = [...this.placed.splice(0), ...this.queue.drain()];
    for (const { handler } of waiting) handler.onFailure(closedFailure);
    for (const connection of this.connections) connection.close();
    this.closeIfEmpty();
    return this.closed.promise;
  }

  /** For `Connection`: it was made, and nobody's octets can be on it. */
  onConnected(connection: Connection): void {
    this.connecting--;
    this.rested.push(connection);
    this.awaitTurnEnd();
  }

  /** For `Connection`: the request it carried was answered or failed. */
  onRequestOver(holder: string): void {
    this.places.give(holder, 1);
    this.placeQueued();
  }

  /** For `Connection`: it may serve another request. */
  onFree(connection: Connection): void {
    this.freed.push(connection);
    this.awaitTurnEnd();
  }

  /** For `Connection`: one that was never made takes the request that waited longest with it. */
  onClosed(connection: Connection, failure: TransportFailure | undefined): void {
    this.connections.delete(connection);
    removeFrom(this.rested, connection);
    removeFrom(this.freed, connection);
    if (failure !== undefined) {
      this.connecting--;
      const asked = this.placed.shift();
      if (asked !== undefined) {
        this.onRequestOver(asked.request.holder);
        asked.handler.onFailure(failure);
      }
    }
    if (this.placed.length > 0) this.awaitTurnEnd();
    this.closeIfEmpty();
  }

  /** Who holds a quarter of the connections gets no more while others wait. */
  private mayBePlaced(holder: string): boolean {
    if (!this.places.mayTake(holder, 1)) return false;
    const quarter = this.options.bounds.connectionsPerTargetMax / 4;
    return this.places.heldBy(holder) < quarter || !this.queue.hasOthers(holder);
  }

  private place(asked: Asked): void {
    this.places.take(asked.request.holder, 1);
    this.placed.push(asked);
    this.awaitTurnEnd();
  }

  private placeQueued(): void {
    while (this.queue.length > 0) {
      const asked = this.queue.shift((holder) => this.mayBePlaced(holder));
      if (asked === undefined) return;
      this.queuePlaces.give(asked.request.holder, 1);
      this.place(asked);
    }
  }

  private awaitTurnEnd(): void {
    if (this.isTurnEndAwaited) return;
    this.isTurnEndAwaited = true;
    this.options.atTurnEnd(() => this.endTurn());
  }

  private endTurn(): void {
    this.isTurnEndAwaited = false;
    this.sendPlaced();
    this.connectForPlaced();
    const { freed } = this;
    this.freed = [];
    this.rested.push(...freed);
    if (this.placed.length === 0 && this.isClosing) for (const connection of this.rested) connection.close();
    if (this.placed.length > 0 && freed.length > 0) this.awaitTurnEnd();
  }

  private sendPlaced(): void {
    while (this.placed.length > 0) {
      const connection = this.takeRested();
      if (connection === undefined) return;
      const asked = this.placed.shift();
      if (asked !== undefined) connection.send(asked.request, asked.handler);
    }
  }

  private takeRested(): Connection | undefined {
    for (let connection = this.rested.pop(); connection !== undefined; connection = this.rested.pop()) {
      if (connection.isUsable()) return connection;
      connection.close();
    }
    return undefined;
  }

  private connectForPlaced(): void {
    const { host, port, bounds } = this.options;
    const { size: already } = this.connections;
    const wanted = this.placed.length - this.connecting - this.freed.length;
    for (let i = 0; i < Math.min(wanted, bounds.connectionsPerTargetMax - already); i++) {
      this.connecting++;
      this.connections.add(new Connection({ host, port, bounds, owner: this }));
    }
  }

  private expireOverdue(): void {
    const nowMs = performance.now();
    for (const connection of this.connections) connection.expire(nowMs);
  }

  private closeIfEmpty(): void {
    const waiting = this.placed.length + this.queue.length;
    if (!this.isClosing || this.connections.size > 0 || waiting > 0) return;
    clearInterval(this.sweep);
    this.closed.resolve();
  }
}

function removeFrom(list: Connection[], connection: Connection): void {
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
