import { Connection, type ConnectionBounds, type ConnectionOwner } from './connection.ts';
import type { AnswerHandler, TargetRequest, TransportFailure } from './target-request.ts';

export interface PoolBounds extends ConnectionBounds {
  readonly connectionsPerTargetMax: number;
  readonly sweepIntervalMs: number;
}

interface ConnectionPoolOptions {
  readonly host: string;
  readonly port: number;
  readonly bounds: PoolBounds;
}

interface Waiting {
  readonly request: TargetRequest;
  readonly handler: AnswerHandler;
}

/** The kept-alive HTTP/1.1 connections to one address, and the requests that wait for one. */
export class ConnectionPool implements ConnectionOwner {
  private readonly options: ConnectionPoolOptions;
  private readonly connections = new Set<Connection>();
  /** The one freed last is taken first, so that those nobody needs grow old and close. */
  private readonly idle: Connection[] = [];
  /** Who bounds it is the caller, who knows how many requests it has under way. */
  private readonly waiting: Waiting[] = [];
  private readonly sweep: NodeJS.Timeout;
  private connecting = 0;
  private isClosing = false;
  private readonly closed = Promise.withResolvers<void>();

  constructor(options: ConnectionPoolOptions) {
    this.options = options;
    // After what has come meanwhile was read: a process that was stopped for a while is late itself.
    const expire = () => this.expireOverdue();
    this.sweep = setInterval(() => setImmediate(expire), options.bounds.sweepIntervalMs);
    this.sweep.unref();
  }

  /** Sends a request as soon as a connection is free; the handler hears what comes of it. */
  send(request: TargetRequest, handler: AnswerHandler): void {
    if (this.isClosing) {
      handler.onFailure(closedFailure);
      return;
    }
    const connection = this.takeIdle();
    if (connection !== undefined) {
      connection.send(request, handler);
      return;
    }
    this.waiting.push({ request, handler });
    this.openForWaiting();
  }

  /** Takes a request back that still waits for a connection; the handler hears nothing more of it. */
  withdraw(handler: AnswerHandler): void {
    const place = this.waiting.findIndex((each) => each.handler === handler);
    if (place >= 0) this.waiting.splice(place, 1);
    this.closeIfEmpty();
  }

  /** Requests under way and waiting are served, then the connections are closed. */
  close(): Promise<void> {
    this.isClosing = true;
    for (const connection of this.idle.splice(0)) connection.close();
    this.closeIfEmpty();
    return this.closed.promise;
  }

  /** The same at once: what is under way fails. */
  destroy(): Promise<void> {
    this.isClosing = true;
    for (const { handler } of this.waiting.splice(0)) handler.onFailure(closedFailure);
    for (const connection of this.connections) connection.close();
    this.closeIfEmpty();
    return this.closed.promise;
  }

  /** For `Connection`. */
  onConnected(): void {
    this.connecting--;
  }

  /** For `Connection`. */
  onFree(connection: Connection): void {
    const next = this.waiting.shift();
    if (next !== undefined) connection.send(next.request, next.handler);
    else if (this.isClosing) connection.close();
    else this.idle.push(connection);
  }

  /** For `Connection`: one that did not come about takes the request that waited longest with it. */
  onClosed(connection: Connection, failure: TransportFailure | undefined): void {
    this.connections.delete(connection);
    const place = this.idle.indexOf(connection);
    if (place >= 0) this.idle.splice(place, 1);
    if (failure !== undefined) {
      this.connecting--;
      this.waiting.shift()?.handler.onFailure(failure);
    }
    this.openForWaiting();
    this.closeIfEmpty();
  }

  private takeIdle(): Connection | undefined {
    for (let connection = this.idle.pop(); connection !== undefined; connection = this.idle.pop()) {
      if (connection.isUsable()) return connection;
      connection.close();
    }
    return undefined;
  }

  private openForWaiting(): void {
    const { host, port, bounds } = this.options;
    if (this.waiting.length <= this.connecting || this.connections.size >= bounds.connectionsPerTargetMax)
      return;
    this.connecting++;
    this.connections.add(new Connection({ host, port, bounds, owner: this }));
  }

  private expireOverdue(): void {
    const nowMs = performance.now();
    for (const connection of this.connections) connection.expire(nowMs);
  }

  private closeIfEmpty(): void {
    if (!this.isClosing || this.connections.size > 0 || this.waiting.length > 0) return;
    clearInterval(this.sweep);
    this.closed.resolve();
  }
}

const closedFailure: TransportFailure = {
  kind: 'closed',
  reach: 'not_reached',
  cause: 'the pool was closed',
};
