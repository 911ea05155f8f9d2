import { leakChange } from '../../fleet/changes.ts';
import { type Charged, type Screened, withResults } from '../../request/exchange.ts';
import { answered, type Ending, refused } from '../../request/path/end-exchange.ts';
import { bucketRefusal } from '../../request/respond/limit-refusal.ts';
import type { Stations } from '../../request/stations.ts';
import { addressGroup } from '../../shared/addresses/address-group.ts';
import type { WholeResponse } from '../../shared/errors.ts';
import type { AnswerPage } from '../interfaces/request.ts';
import { createVerification, signatureOf } from './github/verify-report.ts';
import type { Judged } from './report/apply-report.ts';
import { type ReportedSecret, readReport } from './report/read-report.ts';
import { type ReadBody, readReportBody } from './report/report-body.ts';
import type { ReportPlace } from './report/report-room.ts';
import type { Slices } from './report/slices.ts';
import type { Reports } from './reports.ts';

/**
 * Receives a report of GitHub about leaked secrets. The request needs no key and is charged to the client's address. A request without a
 * valid signature learns nothing about secrets, because its body is not parsed.
 */
export function answerLeakReport(reports: Reports): AnswerPage {
  return async (exchange, _, stations) => {
    const reporter = addressGroup(exchange.address);
    const decision = await reports.bucket.charge(reporter, stations.bounds.leakReportsPerMinuteMax);
    const charged = withResults(exchange, { decision });
    if (decision.kind === 'refused') {
      return refused(charged, bucketRefusal(decision, 'reports of leaked secrets from this address'));
    }
    if (exchange.req.method !== 'POST') {
      return refused(charged, { code: 'method_not_allowed', fields: ['Allow', 'POST'] });
    }
    const place = reports.room.enter(reporter);
    if (place === undefined) return refuseCrowded(charged);
    try {
      return await answerReport(charged, { reporter, place, reports }, stations);
    } finally {
      place.leave();
    }
  };
}

interface ReportToAnswer {
  readonly reporter: string;
  readonly place: ReportPlace;
  readonly reports: Reports;
}

async function answerReport(
  exchange: Screened & Charged,
  { reporter, place, reports }: ReportToAnswer,
  { recordKeyChange, bounds }: Stations,
): Promise<Ending> {
  const { req, res, snapshot } = exchange;
  const { settings } = snapshot;
  const signed = signatureOf(req.headers);
  if (signed === undefined) return refused(exchange, { code: 'invalid_signature' });
  const key = await reports.signingKeys.find(signed.identifier, settings);
  if (key.kind === 'away') {
    return refuseForNow(exchange, 'The public keys of GitHub cannot be read now.', key.retryMs);
  }
  if (key.kind === 'unknown') return refused(exchange, { code: 'invalid_signature' });

  const verification = createVerification(signed, key.key);
  const read = await readReportBody({ req, res, place, bounds, onPart: verification.add });
  if (read.kind !== 'read') return refuseUnread(exchange, read);
  if (!verification.isValid()) return refused(exchange, { code: 'invalid_signature' });
  return reports.inTurn(reporter, async (slices) => {
    const report = await readReport(Buffer.concat(read.parts), slices, bounds);
    if (report.kind === 'malformed') {
      return refused(exchange, { code: 'invalid_request', message: report.message });
    }
    const applied = await reports.apply(report.secrets, {
      settings,
      by: 'github',
      record: (leak) => recordKeyChange(leakChange(leak)),
      slices,
    });
    if (applied.kind === 'away') {
      withResults(exchange, { cause: applied.reason });
      return refuseForNow(exchange, 'The report cannot be processed completely now.');
    }
    return answered(exchange, await feedback(report.secrets, applied.judged, slices));
  });
}

/** Makes the response in the form that GitHub documents for feedback. The response never contains a reported secret. */
async function feedback(
  secrets: readonly ReportedSecret[],
  judged: readonly Judged[],
  slices: Slices,
): Promise<WholeResponse> {
  const entries: string[] = [];
  for (const [index, { digest, place }] of secrets.entries()) {
    const label = judged[index]?.kind === 'known' ? 'true_positive' : 'false_positive';
    entries.push(JSON.stringify({ token_hash: digest, token_type: place.type ?? '', label }));
    await slices.rest();
  }
  const body = Buffer.from(`[${entries.join(',')}]`);
  const length = String(body.length);
  const fields = ['Content-Type', 'application/json', 'Content-Length', length, 'Cache-Control', 'no-store'];
  return { status: 200, fields, body };
}

function refuseUnread(exchange: Screened & Charged, read: Exclude<ReadBody, { kind: 'read' }>): Ending {
  switch (read.kind) {
    case 'too_large':
      return refused(exchange, { code: 'payload_too_large' });
    case 'no_room':
      return refuseCrowded(exchange);
    case 'rejected':
      return refused(exchange, read.rejection);
    case 'client_gone':
      return { kind: 'client_gone', exchange };
  }
}

function refuseCrowded(exchange: Charged): Ending {
  const message = 'Other reports of leaked secrets are in progress. Retry in 1 s.';
  return refused(exchange, { code: 'rate_limited', message, fields: ['Retry-After', '1'] });
}

/** The reporter sends the report again, so no leak is lost. */
function refuseForNow(exchange: Charged, what: string, retryMs = 0): Ending {
  return refused(exchange, {
    code: 'store_unavailable',
    message: `${what} Send the report again.`,
    fields: ['Retry-After', String(Math.max(1, Math.ceil(retryMs / 1_000)))],
  });
}
