import { STATUS_CODES } from 'node:http';
import type { ErrorCode } from '../errors.ts';
import type { AnswerHead } from '../transport/answer-head.ts';
import type {
  AnswerHandler,
  TargetConnection,
  TargetRequest,
  TransportFailure,
} from '../transport/target-request.ts';
import type { AtTurnEnd } from '../turn-end.ts';
import type { Failed, ForwardOutcome, ForwardRequest } from './forward-outcome.ts';
import type { InFlight } from './in-flight.ts';
import { ClientBody, collectBody } from './request-body.ts';
import { requestHead } from './request-head.ts';
import { responseFields } from './response-fields.ts';
import type { RetryBudget } from './retry-budget.ts';
import { mayRetry, retryPauseMs } from './retry-policy.ts';
import type { Bounds, Target, Targets } from './targets.ts';

/** What all relays of a forwarder share. */
export interface RelayContext {
  readonly bounds: Bounds;
  readonly budget: RetryBudget;
  readonly nowMs: () => number;
  readonly random: () => number;
  /** The targets in force; a retry after a reload goes to the new ones. */
  readonly targets: () => Targets;
  /** For the sweep of the total timeout. */
  readonly inFlight: InFlight<Relay>;
  readonly atTurnEnd: AtTurnEnd;
}

export interface RelayEnd {
  resolve(outcome: ForwardOutcome): void;
  /** A bug, for whoever asked. */
  reject(bug: unknown): void;
}

/**
 * Carries one request to a target and the answer back, attempt by attempt. It is the transport's handler itself: one
 * object per request instead of a closure per event.
 */
export class Relay implements AnswerHandler {
  readonly startedMs = performance.now();
  place = 0;
  private readonly context: RelayContext;
  private readonly request: ForwardRequest;
  private readonly end: RelayEnd;
  private targetRequest: TargetRequest | undefined;
  private clientBody: ClientBody | undefined;
  /** Whether it waits for a connection, and the one that serves it then. */
  private isWaiting = false;
  private connection: TargetConnection | undefined;
  private target: Target | undefined;
  private attempts = 0;
  private status = 0;
  /** In Latin-1, when it came along with the head: both are then written as one. */
  private wholeBody: string | undefined;
  private hasBodyBegun = false;
  private settled = false;

  constructor(context: RelayContext, request: ForwardRequest, end: RelayEnd) {
    this.context = context;
    this.request = request;
    this.end = end;
  }

  start(): void {
    const { req, res, requestFields, keepForwarded, bodyBytesMax } = this.request;
    const { bounds, budget, inFlight, nowMs } = this.context;
    const { rawHeaders } = req;
    const { fields, contentLength, chunked, expectsContinue } = requestHead({
      rawHeaders,
      requestFields,
      keepForwarded,
    });
    budget.countRequest(nowMs());
    inFlight.enter(this);
    res.on('close', () => this.onClientClose());

    const { method = 'GET', url: path = '/' } = req;
    const attempt = (body: TargetRequest['body']) => this.attempt({ method, path, fields, body, chunked });
    if (res.destroyed) {
      // While the limits were asked; its `close` is not told again.
      this.onClientClose();
    } else if (contentLength > bodyBytesMax) {
      this.fail('payload_too_large', 'Content-Length is beyond the limit');
    } else if (contentLength === 0 && !chunked) {
      attempt(undefined);
    } else if (!chunked && !expectsContinue && contentLength <= bounds.collectedBodyBytesMax) {
      collectBody(req, contentLength, attempt);
    } else {
      this.clientBody = new ClientBody({
        req,
        bodyBytesMax,
        beforeRead: () => expectsContinue && res.writeContinue(),
        onTooLarge: () => this.onBodyTooLarge(),
      });
      attempt(this.clientBody);
    }
  }

  /** The sweep found it older than the total timeout. */
  expire(): void {
    this.fail('upstream_timeout', 'the whole exchange took too long');
  }

  private attempt(request: TargetRequest): void {
    if (this.settled) return;
    const targets = this.context.targets();
    if (targets.pending !== undefined) {
      void targets.pending.then(() => this.attempt(request));
      return;
    }
    const target = targets.choose(this.target);
    if (target === undefined) {
      this.fail('upstream_unavailable', 'no healthy target has room');
      return;
    }
    this.targetRequest = request;
    this.target = target;
    this.attempts++;
    target.inFlight++;
    this.isWaiting = true;
    target.pool.send(request, this);
  }

  onSend(connection: TargetConnection): void {
    this.isWaiting = false;
    this.connection = connection;
  }

  onHead(head: AnswerHead, wholeBody: string | undefined): void {
    try {
      this.beginAnswer(head, wholeBody);
    } catch (bug) {
      this.leave();
      this.end.reject(bug);
    }
  }

  private beginAnswer({ status, fields }: AnswerHead, wholeBody: string | undefined): void {
    const { res, responseFields: ownFields } = this.request;
    if (res.socket?.writable === false) {
      // The client has been told of a fault in its body, and its connection ended: there is nobody left to answer.
      this.onClientClose();
      return;
    }
    this.status = status;
    this.wholeBody = wholeBody;
    res.writeHead(status, STATUS_CODES[status] ?? 'Unknown', responseFields({ status, fields, ownFields }));
    if (wholeBody === undefined) this.context.atTurnEnd(() => this.showHead());
  }

  /** A body that is slow to begin must not keep its head waiting: an event stream may be silent for long. */
  private showHead(): void {
    if (!this.hasBodyBegun && !this.settled) this.request.res.flushHeaders();
  }

  onPiece(piece: Buffer): boolean {
    const { res } = this.request;
    this.hasBodyBegun = true;
    if (res.write(piece)) return true;
    res.once('drain', () => this.connection?.resume());
    return false;
  }

  onEnd(): void {
    this.leaveTarget();
    this.context.atTurnEnd(() => this.finish());
  }

  /** The answer is complete; unless the client went away meanwhile, so is the exchange. */
  private finish(): void {
    const { target, wholeBody } = this;
    if (this.settled || target === undefined) return;
    const { req, res } = this.request;
    if (wholeBody === undefined) res.end();
    else res.end(wholeBody, 'latin1');
    if (!req.complete) this.clientBody?.discardRest();
    this.settle({
      kind: 'answered',
      status: this.status,
      target: target.address,
      upstreamMs: performance.now() - this.startedMs,
      attempts: this.attempts,
    });
  }

  onFailure(failure: TransportFailure): void {
    const target = this.leaveTarget();
    const { attempts, context, targetRequest: request } = this;
    if (this.settled || target === undefined || request === undefined) return;
    if (failure.kind === 'connect') context.targets().eject(target, failure.cause);
    const { attemptsMax, retryBaseMs: baseMs, retryCapMs: capMs } = context.bounds;
    const { method, body } = request;
    const retry =
      mayRetry({ failure, method, hasBody: body !== undefined, attempts, attemptsMax }) &&
      context.budget.takeRetry(context.nowMs());
    if (!retry) {
      this.fail(errorCodes[failure.kind], failure.cause);
      return;
    }
    const pauseMs = retryPauseMs({ attempt: attempts + 1, baseMs, capMs, random: context.random() });
    setTimeout(() => this.attempt(request), pauseMs);
  }

  private leaveTarget(): Target | undefined {
    this.isWaiting = false;
    this.connection = undefined;
    if (this.target !== undefined) this.target.inFlight--;
    return this.target;
  }

  private onBodyTooLarge(): void {
    // When the answer is complete already, only the connection is left to refuse with.
    if (this.settled) this.request.req.destroy();
    else this.fail('payload_too_large', 'the body went beyond the limit');
  }

  private onClientClose(): void {
    if (!this.settled) this.settle({ kind: 'client_gone', ...this.use() });
  }

  private fail(code: ErrorCode, cause: string): void {
    if (this.settled) return;
    const { res } = this.request;
    const { headersSent } = res;
    const failed: Failed = { kind: 'failed', code, headersSent, cause, ...this.use() };
    this.settle(code === 'upstream_unavailable' ? { ...failed, retryAfterSeconds: 1 } : failed);
    this.clientBody?.letGo();
    if (headersSent) res.destroy();
  }

  private use(): { target?: string; upstreamMs: number; attempts: number } {
    const use = { upstreamMs: performance.now() - this.startedMs, attempts: this.attempts };
    return this.target === undefined ? use : { ...use, target: this.target.address };
  }

  private settle(outcome: ForwardOutcome): void {
    this.leave();
    this.end.resolve(outcome);
  }

  /** From here on nobody waits for a target. */
  private leave(): void {
    this.settled = true;
    this.context.inFlight.leave(this);
    if (this.isWaiting) {
      this.target?.pool.withdraw(this);
      this.leaveTarget();
    } else this.connection?.abort();
  }
}

/** What a failed attempt means to the client. */
const errorCodes = {
  connect: 'upstream_unavailable',
  closed: 'upstream_unavailable',
  timeout: 'upstream_timeout',
  lost: 'upstream_failed',
  malformed: 'upstream_failed',
  aborted: 'upstream_failed',
} as const satisfies Record<TransportFailure['kind'], ErrorCode>;
