import { laterTerms } from '../../keys/plans/plans.ts';
import { type Authenticated, asMutable, authenticate, withResults } from '../../request/exchange.ts';
import type { MinuteBucket } from '../../request/limit/minute-bucket.ts';
import { authenticateRequest } from '../../request/path/authenticate-request.ts';
import { answered, type Ending, refused } from '../../request/path/end-exchange.ts';
import {
  answerPublicPage,
  answerUnlessUnread,
  isPageMethod,
  refuseMethod,
} from '../../request/path/own-answers.ts';
import { refuseUnauthenticated } from '../../request/path/refuse-unauthenticated.ts';
import { bucketRefusal, limitRefusal } from '../../request/respond/limit-refusal.ts';
import type { Stations } from '../../request/stations.ts';
import type { AnswerPage } from '../interfaces/request.ts';
import type { ProcessPart, ProcessSources } from '../interfaces/running.ts';
import { createHolderAssets, createHolderPage, type HolderPart, wantsPage } from './holder-page.ts';
import { jsonPage, limitsView } from './limits-view.ts';
import { deprecatedCallsOf, type OwnUsage, usageOf } from './own-usage.ts';
import { RecordTurns } from './record-turns.ts';
import { holderKeys } from './redis-keys.ts';
import { rotateOwnSecret } from './rotate-secret.ts';

/**
 * The paths at which key holders read the data of their keys: `limitsPath` and paths below it. A browser without a key gets an HTML page at
 * `limitsPath`.
 */
export function createHolderPages({
  usage,
  counts,
  nowMs,
  bounds,
}: Pick<ProcessSources, 'usage' | 'counts' | 'nowMs' | 'bounds'>) {
  const assets = createHolderAssets();
  const bucket = counts.openBucket('limits', holderKeys.limits.name);
  const ownUsage = usage && { ...usage, turns: new RecordTurns(bounds), nowMs };
  return {
    hooks: ({ limitsPath, selfService }) => {
      if (limitsPath === undefined) return {};
      const pageOf = (part: HolderPart) => answerPart(part, { bucket, ownUsage });
      const files = [...assets].map(
        ([name, file]) => [`${limitsPath}/${name}`, answerPublicPage(file)] as const,
      );
      return {
        pages: new Map([
          [limitsPath, orPage(answerPublicPage(createHolderPage(limitsPath)), pageOf('limits'))],
          [`${limitsPath}/usage`, pageOf('usage')],
          [`${limitsPath}/deprecated`, pageOf('deprecated')],
          ...(selfService.rotate ? [[`${limitsPath}/rotate`, pageOf('rotate')] as const] : []),
          ...files,
        ]),
      };
    },
  } satisfies ProcessPart;
}

/** Answers with the HTML page if a browser without a key asks for it, and otherwise with data. */
function orPage(page: AnswerPage, data: AnswerPage): AnswerPage {
  return async (exchange, offered, stations) =>
    varying(await (wantsPage(exchange.req) ? page : data)(exchange, offered, stations));
}

interface HolderSources {
  /** The bucket that requests of a key are charged to. */
  readonly bucket: MinuteBucket;
  /** Undefined without a usage record. */
  readonly ownUsage: OwnUsage | undefined;
}

function answerPart(part: HolderPart, sources: HolderSources): AnswerPage {
  return async (exchange, offered, stations) => {
    asMutable(exchange).offered = offered;
    const caller = await authenticateRequest(exchange, stations);
    if (caller.kind !== 'authenticated') return refuseUnauthenticated(exchange, stations, caller);
    return answerHolder(authenticate(exchange, caller.key), part, stations, sources);
  };
}

/** Serves data of the calling key, even if the key is banned. The request is charged to a separate bucket, not to the quota. */
async function answerHolder(
  exchange: Authenticated,
  part: HolderPart,
  stations: Stations,
  { bucket, ownUsage }: HolderSources,
): Promise<Ending> {
  const { unreadPages, bounds } = stations;
  let { key } = exchange;
  const decision = await bucket.charge(key.id, bounds.limitsReadsPerMinuteMax);
  const charged = withResults(exchange, { decision });
  if (decision.kind === 'refused') {
    return refused(charged, bucketRefusal(decision, 'requests for the limits of this API key'));
  }
  const { method } = exchange.req;
  if (part === 'rotate' && method !== 'POST') return refuseMethod(charged, 'POST');
  if (part !== 'rotate' && !isPageMethod(method)) return refuseMethod(charged);
  // The key is read again, because the cached key may be outdated. The limiter detects an outdated key only for requests that a quota
  // counts.
  if (key.generation !== undefined) await stations.directory?.readAgain(key.id);
  else await stations.blocked.read();
  const caller = await authenticateRequest(exchange, stations);
  if (caller.kind !== 'authenticated') {
    withResults(exchange, { key: undefined });
    return refuseUnauthenticated(exchange, stations, caller);
  }
  ({ key } = caller);
  const own = withResults(charged, { key });
  if (part === 'limits') return answerLimits(own, stations);
  const data = await dataOf[part](own, { ...stations, ownUsage });
  if (data.kind === 'refused') return refused(charged, data.refusal);
  const response = jsonPage(data.value);
  // Only this response contains the new secret, so no later check may refuse it.
  return part === 'rotate' ? answered(charged, response) : answerUnlessUnread(charged, response, unreadPages);
}

const dataOf = { usage: usageOf, deprecated: deprecatedCallsOf, rotate: rotateOwnSecret };

async function answerLimits(exchange: Authenticated, { limiter, readKeyMembers }: Stations): Promise<Ending> {
  const { key, snapshot } = exchange;
  const [read, [members = {}]] = await Promise.all([limiter.readOwn(key), readKeyMembers([key.id])]);
  if (read.kind === 'unavailable')
    return refused(
      withResults(exchange, { decision: read }),
      limitRefusal(read, { ...snapshot, counted: 'request' }),
    );
  const { status, source } = read;
  const counted = { kind: 'counted', rateLimit: status.rateLimit, source } as const;
  const later = laterTerms(key, snapshot.settings.plans, status.rateLimit.nowMs);
  return answered(
    withResults(exchange, { decision: counted }),
    jsonPage(
      limitsView(key, status, {
        later,
        members,
        expiresMs: key.expiry?.atMs,
        canRotate: canRotate(exchange),
        showsBanReason: snapshot.showsBanReason,
      }),
    ),
  );
}

/**
 * Adds `Vary` to a response at the path that also has the HTML page. Without `Vary`, a cache could send the page to a program, or JSON to a
 * browser.
 */
function varying(ending: Ending): Ending {
  switch (ending.kind) {
    case 'answered': {
      const { response } = ending;
      return { ...ending, response: { ...response, fields: [...response.fields, ...varyFields] } };
    }
    case 'refused': {
      const { refusal } = ending;
      return { ...ending, refusal: { ...refusal, fields: [...(refusal.fields ?? []), ...varyFields] } };
    }
    default:
      return ending;
  }
}

/** The request fields that decide whether `limitsPath` responds with the page or with JSON. */
const varyFields = ['Vary', 'Accept, Authorization'];

/** Whether the holder can get a new secret. The key must be in the directory, and the configuration must allow new secrets for holders. */
function canRotate({ key, snapshot }: Authenticated): boolean {
  return snapshot.settings.selfService.rotate && key.generation !== undefined;
}
