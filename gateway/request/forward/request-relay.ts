import type { ErrorCode, WholeResponse } from '../../shared/errors.ts';
import type { AtTurnEnd } from '../../shared/event-loop-batch.ts';
import type { Shares } from '../../shared/structures/shares.ts';

import { bytesTaken } from '../../shared/tls/bytes-taken.ts';
import type { InterimHead, ResponseHead } from '../transport/response-head.ts';
import type {
  ActiveConnection,
  ResponseHandler,
  TargetRequest,
  TransportFailure,
} from '../transport/target-request.ts';
import { ClientPace, type PaceBounds } from './client-pace.ts';
import type { Failed, ForwardOutcome, ForwardRequest } from './forward-types.ts';
import { type BodyListener, RequestBody } from './request-body.ts';
import { type RequestHead, requestHead } from './request-head.ts';
import { interimFields, responseFields } from './response-fields.ts';
import type { UnorderedList } from './unordered-list.ts';
import { mayRetry, retryPauseMs } from './upstream/retry-policy.ts';
import type { Target } from './upstream/targets.ts';
import type { LiveUpstream, Upstreams } from './upstream/upstreams.ts';

/** What all relays of a forwarder share. */
export interface RelayContext {
  readonly nowMs: () => number;
  readonly random: () => number;
  readonly upstreams: Upstreams;
  /** All relays that are not over yet; their deadlines are checked now and then. */
  readonly inFlight: UnorderedList<RequestRelay>;
  /** The memory for collected bodies, shared among holders. */
  readonly collected: Shares;
  readonly atTurnEnd: AtTurnEnd;
}

/** The promise of `forward`. */
interface Settlers {
  resolve(outcome: ForwardOutcome): void;
  /** With a bug. */
  reject(bug: unknown): void;
}

/**
 * Carries one request to a target and the response back to the client, with retries. It implements the transport's
 * handler itself: one object per request instead of a closure per event.
 */
export class RequestRelay implements ResponseHandler, BodyListener {
  readonly startedMs = performance.now();
  /** For the list of those in flight. */
  index = 0;
  private readonly context: RelayContext;
  private readonly request: ForwardRequest;
  private readonly settlers: Settlers;
  private targetRequest: TargetRequest | undefined;
  /** As `upstream` gets it. */
  private head: RequestHead | undefined;
  private body: RequestBody | undefined;
  /** As it was at the last attempt: after a reload a retry goes to the upstream of the same name. */
  private upstream: LiveUpstream | undefined;
  /** Of the current attempt: its target, whether it waits for a connection there, and then the connection. */
  private target: Target | undefined;
  private isWaiting = false;
  private connection: ActiveConnection | undefined;
  private attempts = 0;
  /** Attempts whose connection was lost before an octet of the response. */
  private losses = 0;
  /** Made when the deadlines are checked for the first time: most requests are over by then. */
  private sendPace: ClientPace | undefined;
  private readPace: ClientPace | undefined;
  private status = 0;
  /** The response, when its body (in Latin-1) arrived together with the head: both are then written to the client at once. */
  private whole: WholeResponse | undefined;
  private hasBodyBegun = false;
  /** The outcome is decided; whatever happens afterwards changes nothing. */
  private settled = false;

  constructor(context: RelayContext, request: ForwardRequest, settlers: Settlers) {
    this.context = context;
    this.request = request;
    this.settlers = settlers;
  }

  start(): void {
    const { res, bodyBytesMax } = this.request;
    const { inFlight, nowMs } = this.context;
    const upstream = this.findUpstream();
    const { head } = this;
    if (upstream === undefined || head === undefined) return;
    const { contentLength, chunked } = head;
    upstream.retryBudget.countRequest(nowMs());
    inFlight.add(this);
    res.on('close', () => this.onClientClose());
    res.onRejected = () => this.onRejected();

    if (res.rejection !== undefined) {
      this.onRejected();
    } else if (res.destroyed) {
      // The client went away while the limits were checked: `close` was emitted then and is not emitted again.
      this.onClientClose();
    } else if (contentLength > bodyBytesMax) {
      this.fail('payload_too_large', 'Content-Length is beyond the limit');
    } else if (contentLength === 0 && !chunked) {
      this.attempt(undefined);
    } else this.readBody(upstream, head);
  }

  /** Ends the request when a reload has removed its upstream. One that a reload has changed may want another `Host`. */
  private findUpstream(): LiveUpstream | undefined {
    const upstream = this.context.upstreams.find(this.request.upstream);
    if (upstream === undefined) {
      this.fail('upstream_unavailable', 'a reload removed the upstream');
    } else if (upstream !== this.upstream) {
      const { req, requestFields, keepForwarded } = this.request;
      const { rawHeaders } = req;
      this.upstream = upstream;
      this.head = requestHead({ rawHeaders, requestFields, keepForwarded, host: upstream.host });
    }
    return upstream;
  }

  private targetRequestOf({ fields, chunked }: RequestHead, body: TargetRequest['body']): TargetRequest {
    const { req, holder } = this.request;
    const isWhole = Buffer.isBuffer(body);
    return {
      holder,
      method: req.method ?? 'GET',
      path: req.url ?? '/',
      // A chunked body that was collected whole is sent with its length, which every backend understands.
      fields: isWhole && chunked ? [...fields, 'Content-Length', String(body.length)] : fields,
      body,
      chunked: chunked && body !== undefined && !isWhole,
    };
  }

  private readBody(
    { targets, bounds }: LiveUpstream,
    { contentLength, chunked, expectsContinue }: RequestHead,
  ): void {
    const { req, res, holder, bodyBytesMax } = this.request;
    const { collected } = this.context;
    if (targets.pending === undefined && targets.choose(holder, undefined) === undefined) {
      // Refused before the client sends a body that no target can take.
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
    this.body.collect();
  }

  onReady(whole: Buffer | undefined): void {
    this.guard(() => this.attempt(whole ?? this.body));
  }

  /** The parser found a fault in the body; the rest of it will not come. */
  private onRejected(): void {
    this.fail('invalid_request', 'the request body is malformed');
  }

  onTooLarge(): void {
    // After a complete response the client can only be refused by closing its connection.
    if (this.settled) this.request.req.destroy();
    else this.fail('payload_too_large', 'the body went beyond the limit');
  }

  onNoRoom(): void {
    this.fail('too_many_uploads', 'the key has its share of the bodies that are being collected');
  }

  /** Ends the exchange if the total timeout is over, or if the client is too slow. Called now and then. */
  checkDeadlines(nowMs: number): void {
    this.guard(() => this.endIfOverdue(nowMs));
  }

  private endIfOverdue(nowMs: number): void {
    const { upstream } = this;
    if (upstream === undefined) return;
    const { bounds } = upstream;
    if (nowMs - this.startedMs >= bounds.upstreamTotalTimeoutMs) {
      this.fail('upstream_timeout', 'the whole exchange took too long');
    } else if (this.isSendingTooSlowly(nowMs, bounds)) {
      const cause = 'the client sent its body too slowly';
      if (this.request.res.headersSent) this.dropClient(cause);
      else this.fail('request_timeout', cause);
    } else if (this.isReadingTooSlowly(nowMs, bounds)) {
      this.dropClient('the client read its response too slowly');
    }
  }

  private isSendingTooSlowly(nowMs: number, bounds: PaceBounds): boolean {
    const { body } = this;
    if (body === undefined) return false;
    this.sendPace ??= new ClientPace(bounds, this.startedMs);
    return this.sendPace.isTooSlow({ nowMs, isAwaited: body.isAwaited(), bytes: body.received });
  }

  private isReadingTooSlowly(nowMs: number, bounds: PaceBounds): boolean {
    const { res } = this.request;
    if (res.socket === null) return false;
    const bytes = bytesTaken(res.socket);
    // From now on: what the client has read before is not known, and this process may have been held up meanwhile.
    this.readPace ??= new ClientPace(bounds, nowMs, bytes);
    return this.readPace.isTooSlow({ nowMs, isAwaited: res.writableLength > 0, bytes });
  }

  /** Closes the connection of a client that is too slow to be answered. */
  private dropClient(cause: string): void {
    this.settle({ kind: 'client_gone', cause, ...this.use() });
    this.request.res.destroy();
  }

  private attempt(body: TargetRequest['body']): void {
    if (this.settled) return;
    const targets = this.findUpstream()?.targets;
    const { head } = this;
    if (targets === undefined || head === undefined) return;
    if (targets.pending !== undefined) {
      void targets.pending.then(() => this.guard(() => this.attempt(body)));
      return;
    }
    const target = targets.choose(this.request.holder, this.target);
    if (target === undefined) {
      this.failUnavailable();
      return;
    }
    const request = this.targetRequestOf(head, body);
    this.targetRequest = request;
    this.target = target;
    this.attempts++;
    target.inFlight++;
    this.isWaiting = true;
    target.pool.send(request, this);
  }

  onSend(connection: ActiveConnection): void {
    this.isWaiting = false;
    this.connection = connection;
  }

  onInterim({ status, fields }: InterimHead): void {
    const { req, res } = this.request;
    // HTTP/1.0 defines no interim responses (RFC 9110 §15.2).
    if (req.httpVersion === '1.0' || res.headersSent) return;
    this.guard(() => res.sendInterim(status, interimFields(fields)));
  }

  onHead(head: ResponseHead, wholeBody: string | undefined): void {
    try {
      this.beginResponse(head, wholeBody);
    } catch (bug) {
      this.giveUp(bug);
    }
  }

  /** Runs a step that is called from an event: a bug in it ends this exchange and no other. */
  private guard(step: () => void): void {
    try {
      step();
    } catch (bug) {
      this.giveUp(bug);
    }
  }

  private giveUp(bug: unknown): void {
    this.cleanUp();
    this.settlers.reject(bug);
  }

  private beginResponse({ status, fields, framing }: ResponseHead, wholeBody: string | undefined): void {
    const { req, res, responseFields: ownFields } = this.request;
    if (res.socket?.writable === false) {
      // A fault in the client's body was answered already and its connection is closing.
      this.onClientClose();
      return;
    }
    this.status = status;
    // Not all of the rest of the body may be read, so the next request on this connection could not be found.
    if (!req.complete) res.shouldKeepAlive = false;
    const allFields = responseFields({ status, fields, ownFields });
    if (wholeBody !== undefined) {
      if (framing === 'chunked') allFields.push('Content-Length', String(wholeBody.length));
      this.whole = { status, fields: allFields, body: wholeBody };
      return;
    }
    res.begin(status, allFields);
    res.on('drain', () => this.connection?.resume());
    this.context.atTurnEnd(() => this.guard(() => this.showHead()));
  }

  /** Sends the head before the body begins, which may take long: an event stream may be silent at first. */
  private showHead(): void {
    if (!this.hasBodyBegun && !this.settled) this.request.res.flushHeaders();
  }

  onPiece(piece: Buffer): boolean {
    this.hasBodyBegun = true;
    return this.request.res.write(piece);
  }

  onEnd(): void {
    this.leaveTarget();
    this.context.atTurnEnd(() => this.finish());
  }

  /** The response is complete, and so is the exchange, unless the client went away meanwhile. */
  private finish(): void {
    const { target, whole } = this;
    if (this.settled || target === undefined) return;
    const { req, res } = this.request;
    try {
      if (whole === undefined) res.end();
      else res.answer(whole);
      if (!req.complete) this.body?.discardRest();
    } catch (bug) {
      this.giveUp(bug);
      return;
    }
    this.settle({
      kind: 'forwarded',
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
    const { attempts, context, upstream, targetRequest: request } = this;
    if (this.settled || target === undefined || upstream === undefined || request === undefined) return;
    if (failure.kind === 'connect') upstream.targets.eject(target, failure.cause);
    const { attemptsMax, retryBaseMs: baseMs, retryCapMs: capMs } = upstream.bounds;
    const { method, body } = request;
    if (failure.kind === 'lost') this.losses++;
    const { losses } = this;
    const retry =
      mayRetry({ failure, method, hasBody: body !== undefined, losses, attempts, attemptsMax }) &&
      upstream.retryBudget.takeRetry(context.nowMs());
    if (!retry) {
      this.fail(errorCodes[failure.kind], failure.cause);
      return;
    }
    const pauseMs = retryPauseMs({ attempt: attempts + 1, baseMs, capMs, random: context.random() });
    setTimeout(() => this.guard(() => this.attempt(body)), pauseMs);
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
    this.settle(retryableCodes.has(code) ? { ...failed, retryAfterSeconds: 1 } : failed);
    this.body?.stopReading();
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
    this.cleanUp();
    this.settlers.resolve(outcome);
  }

  /** Gives back what the request holds: its memory, its place in a queue or its connection. */
  private cleanUp(): void {
    this.settled = true;
    this.context.inFlight.remove(this);
    this.body?.release();
    if (this.isWaiting && this.targetRequest !== undefined) {
      this.target?.pool.withdraw(this.targetRequest, this);
      this.leaveTarget();
    } else this.connection?.abort();
  }
}

/** Refusals that may be over a moment later: they are sent with Retry-After. */
const retryableCodes: ReadonlySet<ErrorCode> = new Set(['upstream_unavailable', 'too_many_uploads']);

/** The error that the client is told when the last attempt failed in this way. */
const errorCodes = {
  connect: 'upstream_unavailable',
  closed: 'upstream_unavailable',
  full: 'upstream_unavailable',
  timeout: 'upstream_timeout',
  lost: 'upstream_failed',
  malformed: 'upstream_failed',
  aborted: 'upstream_failed',
} as const satisfies Record<TransportFailure['kind'], ErrorCode>;
