import type { ErrorCode } from '../errors.ts';
import type { AtTurnEnd } from '../event-loop-batch.ts';
import type { Shares } from '../shares.ts';
import type { InterimHead, ResponseHead } from '../transport/response-head.ts';
import type {
  ResponseHandler,
  TargetConnection,
  TargetRequest,
  TransportFailure,
} from '../transport/target-request.ts';
import { bytesTaken, ClientPace } from './client-pace.ts';
import type { Failed, ForwardOutcome, ForwardRequest } from './forward-outcome.ts';
import { type BodyListener, RequestBody } from './request-body.ts';
import { type RequestHead, requestHead } from './request-head.ts';
import { interimFields, responseFields } from './response-fields.ts';
import type { InFlight } from './upstream/in-flight.ts';
import type { RetryBudget } from './upstream/retry-budget.ts';
import { mayRetry, retryPauseMs } from './upstream/retry-policy.ts';
import type { Bounds, Target, Targets } from './upstream/targets.ts';

/** What all relays of a forwarder share. */
export interface RelayContext {
  readonly bounds: Bounds;
  readonly budget: RetryBudget;
  readonly nowMs: () => number;
  readonly random: () => number;
  /** The targets in force; a retry after a reload goes to the new ones. */
  readonly targets: () => Targets;
  /** For the sweep. */
  readonly inFlight: InFlight<Relay>;
  /** Octets of the bodies that are being collected, by key. */
  readonly collected: Shares;
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
export class Relay implements ResponseHandler, BodyListener {
  readonly startedMs = performance.now();
  place = 0;
  private readonly context: RelayContext;
  private readonly request: ForwardRequest;
  private readonly end: RelayEnd;
  private targetRequest: TargetRequest | undefined;
  private head: RequestHead | undefined;
  private body: RequestBody | undefined;
  /** Whether it waits for a connection, and the one that serves it then. */
  private isWaiting = false;
  private connection: TargetConnection | undefined;
  private target: Target | undefined;
  private attempts = 0;
  /** Attempts that ended with a connection that was lost before an octet of the answer. */
  private losses = 0;
  /** How the client keeps up, once it was looked at. */
  private sendPace: ClientPace | undefined;
  private readPace: ClientPace | undefined;
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
    const { budget, inFlight, nowMs } = this.context;
    const { rawHeaders } = req;
    this.head = requestHead({ rawHeaders, requestFields, keepForwarded });
    const { contentLength, chunked } = this.head;
    budget.countRequest(nowMs());
    inFlight.enter(this);
    res.on('close', () => this.onClientClose());
    res.onRejected = () => this.onRejected();

    if (res.rejection !== undefined) {
      this.onRejected();
    } else if (res.destroyed) {
      // While the limits were asked; its `close` is not told again.
      this.onClientClose();
    } else if (contentLength > bodyBytesMax) {
      this.fail('payload_too_large', 'Content-Length is beyond the limit');
    } else if (contentLength === 0 && !chunked) {
      this.attempt(this.targetRequestOf(this.head.fields, undefined, false));
    } else this.readBody(this.head);
  }

  private targetRequestOf(
    fields: readonly string[],
    body: TargetRequest['body'],
    chunked: boolean,
  ): TargetRequest {
    const { req, holder } = this.request;
    return { holder, method: req.method ?? 'GET', path: req.url ?? '/', fields, body, chunked };
  }

  private readBody({ contentLength, chunked, expectsContinue }: RequestHead): void {
    const { req, res, holder, bodyBytesMax } = this.request;
    const { bounds, collected, targets } = this.context;
    if (targets().pending === undefined && targets().choose(holder, undefined) === undefined) {
      // Before the client sends a body that nobody can take.
      this.failUnavailable();
      return;
    }
    this.body = new RequestBody({
      req,
      contentLength: chunked ? undefined : contentLength,
      bodyBytesMax,
      collectedBytesMax: bounds.collectedBodyBytesMax,
      collected,
      holder,
      listener: this,
    });
    if (expectsContinue) res.writeContinue();
    this.body.read();
  }

  onReady(whole: Buffer | undefined): void {
    this.guard(() => this.attemptWithBody(whole));
  }

  private attemptWithBody(whole: Buffer | undefined): void {
    const { head, body } = this;
    if (head === undefined || body === undefined) return;
    const { fields, chunked } = head;
    // A body that came in chunks and is known whole goes on with its length, as every backend understands it.
    const sized =
      whole !== undefined && chunked ? [...fields, 'Content-Length', String(whole.length)] : fields;
    this.attempt(this.targetRequestOf(sized, whole ?? body, chunked && whole === undefined));
  }

  /** The parser found a fault in the body; the rest of it will not come. */
  private onRejected(): void {
    this.fail('invalid_request', 'the request body is malformed');
  }

  onTooLarge(): void {
    // When the answer is complete already, only the connection is left to refuse with.
    if (this.settled) this.request.req.destroy();
    else this.fail('payload_too_large', 'the body went beyond the limit');
  }

  onNoRoom(): void {
    this.fail('too_many_uploads', 'the key has its share of the bodies that are being collected');
  }

  /** Ends it when it is past the total timeout, or when its client is too slow; asked for now and then. */
  look(nowMs: number): void {
    this.guard(() => this.endIfOverdue(nowMs));
  }

  private endIfOverdue(nowMs: number): void {
    const { bounds } = this.context;
    if (nowMs - this.startedMs >= bounds.upstreamTotalTimeoutMs) {
      this.fail('upstream_timeout', 'the whole exchange took too long');
    } else if (this.isSendingTooSlowly(nowMs)) {
      const cause = 'the client sent its body too slowly';
      if (this.request.res.headersSent) this.dropClient(cause);
      else this.fail('request_timeout', cause);
    } else if (this.isReadingTooSlowly(nowMs)) {
      this.dropClient('the client read its response too slowly');
    }
  }

  private isSendingTooSlowly(nowMs: number): boolean {
    const { body } = this;
    if (body === undefined) return false;
    this.sendPace ??= new ClientPace(this.context.bounds, this.startedMs);
    return this.sendPace.isTooSlow({ nowMs, isAwaited: body.isAwaited(), bytes: body.received });
  }

  private isReadingTooSlowly(nowMs: number): boolean {
    const { res } = this.request;
    if (res.socket === null) return false;
    const bytes = bytesTaken(res.socket);
    this.readPace ??= new ClientPace(this.context.bounds, this.startedMs, bytes);
    return this.readPace.isTooSlow({ nowMs, isAwaited: res.writableLength > 0, bytes });
  }

  /** Its connection is cut: whatever it still sends or reads comes too late. */
  private dropClient(cause: string): void {
    this.settle({ kind: 'client_gone', cause, ...this.use() });
    this.request.res.destroy();
  }

  private attempt(request: TargetRequest): void {
    if (this.settled) return;
    const targets = this.context.targets();
    if (targets.pending !== undefined) {
      void targets.pending.then(() => this.guard(() => this.attempt(request)));
      return;
    }
    const target = targets.choose(request.holder, this.target);
    if (target === undefined) {
      this.failUnavailable();
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

  onInterim({ status, fields }: InterimHead): void {
    const { req, res } = this.request;
    // HTTP/1.0 knows no interim responses (RFC 9110 §15.2).
    if (req.httpVersion === '1.0' || res.headersSent) return;
    this.guard(() => res.sendInterim(status, interimFields(fields)));
  }

  onHead(head: ResponseHead, wholeBody: string | undefined): void {
    try {
      this.beginAnswer(head, wholeBody);
    } catch (bug) {
      this.giveUp(bug);
    }
  }

  /** A bug in a step that no caller waits for ends this exchange and no other. */
  private guard(step: () => void): void {
    try {
      step();
    } catch (bug) {
      this.giveUp(bug);
    }
  }

  private giveUp(bug: unknown): void {
    this.leave();
    this.end.reject(bug);
  }

  private beginAnswer({ status, fields }: ResponseHead, wholeBody: string | undefined): void {
    const { req, res, responseFields: ownFields } = this.request;
    if (res.socket?.writable === false) {
      // The client has been told of a fault in its body, and its connection ended: there is nobody left to answer.
      this.onClientClose();
      return;
    }
    this.status = status;
    this.wholeBody = wholeBody;
    // The rest of the body is read within limits and thrown away, and where it ends nobody may rely on.
    if (!req.complete) res.shouldKeepAlive = false;
    res.begin(status, responseFields({ status, fields, ownFields }));
    if (wholeBody === undefined) this.context.atTurnEnd(() => this.guard(() => this.showHead()));
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
    try {
      if (wholeBody === undefined) res.end();
      else res.end(wholeBody, 'latin1');
      if (!req.complete) this.body?.discardRest();
    } catch (bug) {
      this.giveUp(bug);
      return;
    }
    this.settle({
      kind: 'answered',
      status: this.status,
      target: target.address,
      upstreamMs: performance.now() - this.startedMs,
      attempts: this.attempts,
    });
  }

  onFailure(failure: TransportFailure): void {
    this.guard(() => this.endAttempt(failure));
  }

  private endAttempt(failure: TransportFailure): void {
    const target = this.leaveTarget();
    const { attempts, context, targetRequest: request } = this;
    if (this.settled || target === undefined || request === undefined) return;
    if (failure.kind === 'connect') context.targets().eject(target, failure.cause);
    const { attemptsMax, retryBaseMs: baseMs, retryCapMs: capMs } = context.bounds;
    const { method, body } = request;
    if (failure.kind === 'lost') this.losses++;
    const { losses } = this;
    const retry =
      mayRetry({ failure, method, hasBody: body !== undefined, losses, attempts, attemptsMax }) &&
      context.budget.takeRetry(context.nowMs());
    if (!retry) {
      this.fail(errorCodes[failure.kind], failure.cause);
      return;
    }
    const pauseMs = retryPauseMs({ attempt: attempts + 1, baseMs, capMs, random: context.random() });
    setTimeout(() => this.guard(() => this.attempt(request)), pauseMs);
  }

  private leaveTarget(): Target | undefined {
    this.isWaiting = false;
    this.connection = undefined;
    if (this.target !== undefined) this.target.inFlight--;
    return this.target;
  }

  private onClientClose(): void {
    if (!this.settled) this.settle({ kind: 'client_gone', ...this.use() });
  }

  private fail(code: ErrorCode, cause: string): void {
    if (this.settled) return;
    const { res } = this.request;
    const { headersSent } = res;
    const failed: Failed = { kind: 'failed', code, headersSent, cause, ...this.use() };
    this.settle(laterCodes.has(code) ? { ...failed, retryAfterSeconds: 1 } : failed);
    this.body?.leave();
    if (headersSent) res.destroy();
  }

  private failUnavailable(): void {
    this.fail('upstream_unavailable', 'no healthy target has room');
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
    this.body?.release();
    if (this.isWaiting && this.targetRequest !== undefined) {
      this.target?.pool.withdraw(this.targetRequest, this);
      this.leaveTarget();
    } else this.connection?.abort();
  }
}

/** Refusals that a client may hope to escape by trying again a moment later. */
const laterCodes: ReadonlySet<ErrorCode> = new Set(['upstream_unavailable', 'too_many_uploads']);

/** What a failed attempt means to the client. */
const errorCodes = {
  connect: 'upstream_unavailable',
  closed: 'upstream_unavailable',
  full: 'upstream_unavailable',
  timeout: 'upstream_timeout',
  lost: 'upstream_failed',
  malformed: 'upstream_failed',
  aborted: 'upstream_failed',
} as const satisfies Record<TransportFailure['kind'], ErrorCode>;
