import type { ErrorCode, WholeResponse } from '../../shared/errors.ts';
import type { AtTurnEnd } from '../../shared/event-loop-batch.ts';
import type { Shares } from '../../shared/structures/shares.ts';
import type { Bounds } from '../../shared/timeouts-and-sizes.ts';
import { bytesTaken } from '../../shared/tls/bytes-taken.ts';
import type { InterimHead, ResponseHead } from '../transport/response-head.ts';
import type {
  ActiveConnection,
  ResponseHandler,
  TargetRequest,
  TransportFailure,
} from '../transport/target-request.ts';
import { ClientPace } from './client-pace.ts';
import type { ForwardOutcome, ForwardRequest, UpstreamUse } from './forward-types.ts';
import { type BodyListener, RequestBody } from './request-body.ts';
import { type RequestHead, requestHead } from './request-head.ts';
import { interimFields, responseFields } from './response-fields.ts';
import type { UnorderedList } from './unordered-list.ts';
import { mayRetry, retryPauseMs } from './upstream/retry-policy.ts';
import type { Target } from './upstream/targets.ts';
import type { LiveUpstream, Upstreams } from './upstream/upstreams.ts';

/** The dependencies that all relays of a forwarder share. */
export interface RelayContext {
  readonly nowMs: () => number;
  readonly random: () => number;
  readonly upstreams: Upstreams;
  /** The unfinished relays, for the periodic check of their deadlines. */
  readonly inFlight: UnorderedList<RequestRelay>;
  /** The memory for buffered request bodies. */
  readonly collected: Shares;
  readonly atTurnEnd: AtTurnEnd;
}

/** The functions that settle the promise of `forward`. Only a bug in the gateway rejects this promise. */
type Settlers = Pick<PromiseWithResolvers<ForwardOutcome>, 'resolve' | 'reject'>;

/**
 * Forwards one request to a target and the response to the client, with retries. The class itself implements the transport's handler
 * interface, so a request is one object instead of one closure per event.
 * The class is long because each event of an attempt uses the same state.
 */
export class RequestRelay implements ResponseHandler, BodyListener {
  readonly startedMs = performance.now();
  /** The position in the list of requests in flight. */
  index = 0;
  private readonly context: RelayContext;
  private readonly request: ForwardRequest;
  private readonly settlers: Settlers;
  private targetRequest: TargetRequest | undefined;
  /** The request head that is sent to `upstream`. */
  private head: RequestHead | undefined;
  private body: RequestBody | undefined;
  /** The upstream of the last attempt. A retry after a reload goes to the new upstream of the same name. */
  private upstream: LiveUpstream | undefined;
  /** The target of the current attempt. `isWaiting` is true until the attempt has a connection. */
  private target: Target | undefined;
  private isWaiting = false;
  private connection: ActiveConnection | undefined;
  private attempts = 0;
  /** Only for `onAttemptEnd`. */
  private attemptStartedMs = 0;
  /** The number of attempts whose connection was lost before the first octet of the response. */
  private losses = 0;
  /** The two paces are created at the first check of deadlines, because most requests end before the first check. */
  private sendPace: ClientPace | undefined;
  private readPace: ClientPace | undefined;
  /** The number of octets that the client's connection had taken before this response. */
  private bytesBefore = 0;
  /**
   * How long the gateway has waited for the client to send or to read octets, or for other clients of the key, whose requests hold the key's
   * connections. Up to the check at `checkedMs`.
   */
  private clientWaitMs = 0;
  private checkedMs = this.startedMs;
  /** The number of pieces of the response's body, now and at the last check, and the check at which the last piece was found. */
  private pieces = 0;
  private piecesChecked = 0;
  private silentSinceMs = this.startedMs;
  private status = 0;
  /** Whether the target has announced the length of its response. */
  private hasLength = false;
  /** The whole response, if its body (in Latin-1) arrived together with the head. The client gets head and body in one write. */
  private whole: WholeResponse | undefined;
  /** Whether the outcome of the request is decided. Events after this decision have no effect. */
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
      // The client closed the connection while the limits were checked. Node does not emit `close` again.
      this.onClientClose();
    } else if (contentLength > bodyBytesMax) {
      this.fail('payload_too_large', 'Content-Length is above the limit');
    } else if (contentLength === 0 && !chunked) {
      this.attempt(undefined);
    } else this.readBody(upstream, head);
  }

  /**
   * Returns the current upstream. Ends the request if a reload has removed the upstream. Makes a new head if a reload has replaced the
   * upstream, because `Host` may differ.
   */
  private findUpstream(): LiveUpstream | undefined {
    const upstream = this.context.upstreams.find(this.request.upstream);
    if (upstream === undefined) {
      this.fail('upstream_unavailable', 'a reload removed the upstream');
    } else if (upstream !== this.upstream) {
      const { req, requestFields, keepForwarded, host: clientHost, attemptFields } = this.request;
      const { rawHeaders } = req;
      const host = upstream.host ?? clientHost;
      this.upstream = upstream;
      const replaced = attemptFields?.replaced;
      this.head = requestHead({ rawHeaders, requestFields, keepForwarded, host, replaced });
    }
    return upstream;
  }

  private targetRequestOf({ fields, chunked }: RequestHead, body: TargetRequest['body']): TargetRequest {
    const { req, target, holder, attemptFields } = this.request;
    const isWhole = Buffer.isBuffer(body);
    // A chunked body that is fully buffered is sent with Content-Length, which every backend understands.
    const framed = isWhole && chunked ? [...fields, 'Content-Length', String(body.length)] : fields;
    return {
      holder,
      method: req.method ?? 'GET',
      path: target,
      fields:
        attemptFields === undefined ? framed : [...framed, ...attemptFields.fieldsOf(this.attempts + 1)],
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
      // The request is refused before the client sends its body, because no target has room.
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

  /** Called when Node's parser finds a fault in the request body. After the fault, Node delivers no further octets of the body. */
  private onRejected(): void {
    this.fail('invalid_request', 'the request body is malformed');
  }

  onTooLarge(): void {
    // If the response is already complete, the gateway can only close the connection.
    if (this.settled) this.request.req.destroy();
    else this.fail('payload_too_large', 'the body exceeded the limit');
  }

  onNoRoom(): void {
    this.fail('too_many_uploads', 'the key has used its share of the memory for request bodies');
  }

  /** Ends the exchange if the total timeout has passed or the client is too slow. Called periodically. */
  checkDeadlines(nowMs: number): void {
    this.guard(() => this.endIfOverdue(nowMs));
  }

  private endIfOverdue(nowMs: number): void {
    const { upstream, body, request } = this;
    if (upstream === undefined) return;
    const { bounds } = upstream;
    const isBodyAwaited = body?.isAwaited() ?? false;
    const isReadAwaited = request.res.writableLength > 0;
    const isInOwnWay =
      this.isWaiting && this.target?.pool.holdersInTheirOwnWay(nowMs).has(request.holder) === true;
    if (isBodyAwaited || isReadAwaited || isInOwnWay) this.clientWaitMs += nowMs - this.checkedMs;
    this.checkedMs = nowMs;
    if (this.pieces > this.piecesChecked) this.silentSinceMs = nowMs;
    this.piecesChecked = this.pieces;
    if (nowMs - this.startedMs >= bounds.upstreamTotalTimeoutMs) {
      this.endOverdue(nowMs);
    } else if (this.isSendingTooSlowly(nowMs, isBodyAwaited, bounds)) {
      this.endSlowClient('the client sent its body too slowly');
    } else if (this.isReadingTooSlowly(nowMs, isReadAwaited, bounds)) {
      this.endSlowClient('the client read its response too slowly');
    }
  }

  /**
   * Ends an exchange that has reached the total timeout. The side at fault is the side for which the gateway has waited longer. A response
   * without a length may be a stream without an end. Its target is at fault only if it has sent nothing for half of the time.
   */
  private endOverdue(nowMs: number): void {
    const cause = 'the whole exchange took too long';
    const halfMs = (nowMs - this.startedMs) / 2;
    if (this.clientWaitMs > halfMs) {
      this.endSlowClient(`${cause}, mostly because of the client`);
    } else if (this.request.res.headersSent && !this.hasLength && nowMs - this.silentSinceMs < halfMs) {
      this.endSlowClient('the target was still sending a response without a length at the total timeout');
    } else this.fail('upstream_timeout', cause);
  }

  private isSendingTooSlowly(nowMs: number, isAwaited: boolean, bounds: Bounds): boolean {
    const { body } = this;
    if (body === undefined) return false;
    const { startedMs } = this;
    this.sendPace ??= new ClientPace(bounds, { startedMs, aheadMaxMs: bounds.clientAheadMaxMs });
    return this.sendPace.isTooSlow({ nowMs, isAwaited, bytes: body.received });
  }

  private isReadingTooSlowly(nowMs: number, isAwaited: boolean, bounds: Bounds): boolean {
    const { res } = this.request;
    if (res.socket === null) return false;
    const bytes = bytesTaken(res.socket);
    this.readPace ??= new ClientPace(bounds, {
      startedMs: nowMs,
      bytesBefore: this.bytesBefore,
      aheadMaxMs: bounds.clientReadAheadMaxMs,
    });
    return this.readPace.isTooSlow({ nowMs, isAwaited, bytes });
  }

  /** Ends an exchange because of its client. The client gets an error if no part of a response was sent. */
  private endSlowClient(cause: string): void {
    if (this.request.res.headersSent) this.dropClient(cause);
    else this.fail('request_timeout', cause);
  }

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
    if (this.request.onAttemptEnd !== undefined) this.attemptStartedMs = performance.now();
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
    // HTTP/1.0 clients must not get interim responses (RFC 9110 §15.2).
    if (req.httpVersion === '1.0' || res.headersSent) return;
    this.guard(() => res.sendInterim(status, interimFields(fields)));
  }

  onHead(head: ResponseHead, wholeBody: string | undefined): void {
    if (this.target !== undefined) this.target.hasResponded = true;
    try {
      this.beginResponse(head, wholeBody);
    } catch (bug) {
      this.giveUp(bug);
    }
  }

  /** An exception in the handler ends only this exchange. */
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
      // The client already got an error response for its malformed body, and its connection is closing.
      this.onClientClose();
      return;
    }
    this.status = status;
    this.hasLength = framing === 'length';
    // If the rest of the request body stays unread, the start of the next request is unknown. The connection must therefore close.
    if (!req.complete) res.shouldKeepAlive = false;
    const allFields = responseFields({ status, fields, ownFields });
    if (wholeBody !== undefined) {
      if (framing === 'chunked') allFields.push('Content-Length', String(wholeBody.length));
      this.whole = { status, fields: allFields, body: wholeBody };
      return;
    }
    if (res.socket !== null) this.bytesBefore = bytesTaken(res.socket);
    res.begin(status, allFields);
    res.on('drain', () => this.connection?.resume());
    this.context.atTurnEnd(() => this.guard(() => this.showHead()));
  }

  /** Sends the head before the first part of the body, because an event stream may send nothing at first. */
  private showHead(): void {
    if (this.pieces === 0 && !this.settled) this.request.res.flushHeaders();
  }

  onPiece(piece: Buffer): boolean {
    this.pieces++;
    return this.request.res.write(piece);
  }

  onEnd(): void {
    this.leaveTarget();
    this.context.atTurnEnd(() => this.finish());
  }

  /** Ends the response to the client and the exchange, unless the client has closed the connection. */
  private finish(): void {
    const { whole } = this;
    if (this.settled) return;
    const { req, res } = this.request;
    try {
      if (whole === undefined) res.end();
      else res.answer(whole);
      if (!req.complete) this.body?.discardRest();
    } catch (bug) {
      this.giveUp(bug);
      return;
    }
    this.settle({ kind: 'forwarded', status: this.status, ...this.use() });
  }

  onFailure(failure: TransportFailure): void {
    this.guard(() => this.endAttempt(failure));
  }

  private endAttempt(failure: TransportFailure): void {
    const error = failure.kind === 'aborted' ? undefined : errorCodes[failure.kind];
    const target = this.leaveTarget(failure.cause, error);
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

  /** Ends the attempt. @param cause why the response is missing or incomplete */
  private leaveTarget(cause?: string, error?: ErrorCode): Target | undefined {
    const { target, status, attemptStartedMs: startedMs, request } = this;
    this.isWaiting = false;
    this.connection = undefined;
    if (target === undefined) return undefined;
    target.inFlight--;
    const { address } = target;
    request.onAttemptEnd?.({ target: address, startedMs, endedMs: performance.now(), status, cause, error });
    return target;
  }

  private onClientClose(): void {
    if (!this.settled) this.settle({ kind: 'client_gone', ...this.use() });
  }

  private fail(code: ErrorCode, cause: string): void {
    if (this.settled) return;
    const { res } = this.request;
    const { headersSent } = res;
    const retryAfterSeconds = retryableCodes.has(code) ? 1 : undefined;
    this.settle({ kind: 'failed', code, headersSent, cause, retryAfterSeconds, ...this.use() });
    this.body?.stopReading();
    if (headersSent) res.destroy();
  }

  private failUnavailable(): void {
    this.fail('upstream_unavailable', 'no healthy target has room');
  }

  private use(): UpstreamUse {
    const upstreamMs = performance.now() - this.startedMs;
    return { target: this.target?.address, upstreamMs, attempts: this.attempts };
  }

  private settle(outcome: ForwardOutcome): void {
    this.cleanUp();
    this.settlers.resolve(outcome);
  }

  /** Releases the request's memory, its place in the queue and its connection. */
  private cleanUp(): void {
    this.settled = true;
    this.context.inFlight.remove(this);
    this.body?.release();
    if (this.isWaiting && this.targetRequest !== undefined) {
      this.target?.pool.withdraw(this.targetRequest, this);
      this.leaveTarget('the request was abandoned before it had a connection');
    } else this.connection?.abort();
  }
}

/** Error codes that get `Retry-After`, because the cause may be gone a second later. */
const retryableCodes: ReadonlySet<ErrorCode> = new Set(['upstream_unavailable', 'too_many_uploads']);

const errorCodes = {
  connect: 'upstream_unavailable',
  closed: 'upstream_unavailable',
  full: 'upstream_unavailable',
  timeout: 'upstream_timeout',
  lost: 'upstream_failed',
  malformed: 'upstream_failed',
  aborted: 'upstream_failed',
} as const satisfies Record<TransportFailure['kind'], ErrorCode>;
