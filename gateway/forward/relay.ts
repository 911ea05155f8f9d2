import { STATUS_CODES } from 'node:http';
import type { Dispatcher } from 'undici';
import type { ErrorCode } from '../errors.ts';
import type { AtTurnEnd } from '../turn-end.ts';
import { classifyFailure, type Reach } from './classify-failure.ts';
import type { Failed, ForwardOutcome, ForwardRequest } from './forward-outcome.ts';
import type { InFlight } from './in-flight.ts';
import { collectBody, type StreamedBody, streamBody } from './request-body.ts';
import { requestHead } from './request-head.ts';
import { responseHead } from './response-head.ts';
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

/**
 * An answer's body that came in one piece of at most this size leaves as a Latin-1 string, byte for byte the same: Node
 * then writes head and body in one piece, which takes 5 % less CPU per request than corking the two.
 */
const wholeBodyBytesMax = 16_384;

/**
 * Carries one request to a target and the answer back, attempt by attempt. It is undici's dispatch handler itself: one
 * object per request instead of a closure per event.
 */
export class Relay implements Dispatcher.DispatchHandler {
  readonly startedMs = performance.now();
  place = 0;
  private readonly context: RelayContext;
  private readonly request: ForwardRequest;
  private readonly resolve: (outcome: ForwardOutcome) => void;
  private options: Dispatcher.DispatchOptions | undefined;
  private streamedBody: StreamedBody | undefined;
  private controller: Dispatcher.DispatchController | undefined;
  private target: Target | undefined;
  private attempts = 0;
  private reach: Reach = 'not_reached';
  private status = 0;
  /** Of the answer; NaN when the backend did not say. */
  private contentLength = Number.NaN;
  private wholeBody: Buffer | undefined;
  private settled = false;

  constructor(context: RelayContext, request: ForwardRequest, resolve: (outcome: ForwardOutcome) => void) {
    this.context = context;
    this.request = request;
    this.resolve = resolve;
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
    const options: Dispatcher.DispatchOptions = {
      path: req.url ?? '/',
      method: req.method ?? 'GET',
      headers: fields,
      body: null,
    };
    this.options = options;
    budget.countRequest(nowMs());
    inFlight.enter(this);
    res.on('close', () => this.onClientClose());

    if (res.destroyed) {
      // While the limits were asked; its `close` is not told again.
      this.onClientClose();
    } else if (contentLength > bodyBytesMax) {
      this.fail('payload_too_large', 'Content-Length is beyond the limit');
    } else if (contentLength === 0 && !chunked) {
      this.attempt();
    } else if (!chunked && !expectsContinue && contentLength <= bounds.collectedBodyBytesMax) {
      collectBody(req, contentLength, (body) => {
        options.body = body;
        this.attempt();
      });
    } else {
      this.streamedBody = streamBody({
        req,
        bodyBytesMax,
        beforeRead: () => expectsContinue && res.writeContinue(),
        onTooLarge: () => this.onBodyTooLarge(),
      });
      options.body = this.streamedBody.stream;
      this.attempt();
    }
  }

  /** The sweep found it older than the total timeout. */
  expire(): void {
    this.fail('upstream_timeout', 'the whole exchange took too long');
  }

  private attempt(): void {
    if (this.settled || this.options === undefined) return;
    const targets = this.context.targets();
    if (targets.pending !== undefined) {
      void targets.pending.then(() => this.attempt());
      return;
    }
    const target = targets.choose(this.target);
    if (target === undefined) {
      this.fail('upstream_unavailable', 'no healthy target has room');
      return;
    }
    this.target = target;
    this.attempts++;
    this.reach = 'not_reached';
    target.inFlight++;
    target.pool.dispatch(this.options, this);
  }

  /** undici: a connection stands and the request is about to be written. */
  onRequestStart(controller: Dispatcher.DispatchController): void {
    // A throw here is the one way out that costs no connection: it waited in the queue and nobody waits for it any more.
    if (this.settled) throw new Error('settled while it was queued');
    this.controller = controller;
    this.reach = 'unanswered';
  }

  /** undici: the first byte of an answer. */
  onResponseStarted(): void {
    this.reach = 'answering';
  }

  onResponseStart(
    controller: Dispatcher.DispatchController,
    status: number,
    headers: Record<string, string | string[] | undefined>,
  ): void {
    if (this.settled) return;
    // Interim answers end here (RFC 9110 §15.2 lets a proxy drop them); 101 was not asked for.
    if (status >= 102 && status <= 199) return;
    const { res, responseFields } = this.request;
    const head = responseHead({ status, headers, ownFields: responseFields });
    if (head.kind === 'broken') {
      controller.abort(new Error(head.cause));
      return;
    }
    this.status = status;
    this.contentLength = Number(headers['content-length']);
    res.writeHead(status, STATUS_CODES[status] ?? 'Unknown', head.fields);
  }

  onResponseData(controller: Dispatcher.DispatchController, chunk: Buffer): void {
    if (this.settled) return;
    const { res } = this.request;
    if (chunk.length === this.contentLength && chunk.length <= wholeBodyBytesMax) {
      this.wholeBody = chunk;
      return;
    }
    if (res.write(chunk)) return;
    controller.pause();
    res.once('drain', () => controller.resume());
  }

  onResponseEnd(): void {
    this.leaveTarget();
    if (!this.settled) this.context.atTurnEnd(() => this.finish());
  }

  /** The answer is complete; unless the client went away meanwhile, so is the exchange. */
  private finish(): void {
    const { target, wholeBody } = this;
    if (this.settled || target === undefined) return;
    const { req, res } = this.request;
    if (wholeBody === undefined) res.end();
    else res.end(wholeBody.toString('latin1'), 'latin1');
    if (!req.complete) this.streamedBody?.discardRest();
    this.settle({
      kind: 'answered',
      status: this.status,
      target: target.address,
      upstreamMs: performance.now() - this.startedMs,
      attempts: this.attempts,
    });
  }

  onResponseError(_controller: Dispatcher.DispatchController | null, error: Error): void {
    const target = this.leaveTarget();
    if (this.settled || target === undefined) return;
    const { reach, attempts, context, request } = this;
    const failure = classifyFailure(error, reach);
    if (failure.isConnectFailure) context.targets().eject(target, failure.cause);
    const retry =
      mayRetry({
        failure,
        reach,
        method: request.req.method ?? '',
        hasBody: this.options?.body !== null,
        attempts,
        attemptsMax: context.bounds.attemptsMax,
      }) && context.budget.takeRetry(context.nowMs());
    if (!retry) {
      this.fail(failure.code, failure.cause);
      return;
    }
    const { retryBaseMs: baseMs, retryCapMs: capMs } = context.bounds;
    const pauseMs = retryPauseMs({ attempt: attempts + 1, baseMs, capMs, random: context.random() });
    setTimeout(() => this.attempt(), pauseMs);
  }

  private leaveTarget(): Target | undefined {
    if (this.target !== undefined) this.target.inFlight--;
    return this.target;
  }

  private onBodyTooLarge(): void {
    // When the answer is complete already, only the connection is left to refuse with.
    if (this.settled) this.request.req.destroy();
    else this.fail('payload_too_large', 'the body went beyond the limit');
  }

  private onClientClose(): void {
    if (this.settled) return;
    this.settle({ kind: 'client_gone', ...this.use() });
    this.controller?.abort(new Error('the client went away'));
  }

  private fail(code: ErrorCode, cause: string): void {
    if (this.settled) return;
    const { res } = this.request;
    const { headersSent } = res;
    const failed: Failed = { kind: 'failed', code, headersSent, cause, ...this.use() };
    this.settle(code === 'upstream_unavailable' ? { ...failed, retryAfterSeconds: 1 } : failed);
    this.controller?.abort(new Error(cause));
    this.streamedBody?.letGo();
    if (headersSent) res.destroy();
  }

  private use(): { target?: string; upstreamMs: number; attempts: number } {
    const use = { upstreamMs: performance.now() - this.startedMs, attempts: this.attempts };
    return this.target === undefined ? use : { ...use, target: this.target.address };
  }

  private settle(outcome: ForwardOutcome): void {
    this.settled = true;
    this.context.inFlight.leave(this);
    this.resolve(outcome);
  }
}
