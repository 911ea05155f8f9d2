import { laterTerms } from '../../keys/plans/plans.ts';
import {
  type Authenticated,
  asMutable,
  authenticate,
  type Charged,
  type Screened,
  withResults,
} from '../../request/exchange.ts';
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
import type { Link } from './links/link-store.ts';
import { isLinkToken } from './links/link-token.ts';
import { createLinks } from './links/links.ts';
import { createOpenByLink, type OpenByLink } from './links/open-by-link.ts';
import { holderKeys } from './redis-keys.ts';
import { rotateOwnSecret } from './rotate-secret.ts';
import { deprecatedCallsOf, type OwnUsage, usageOf } from './usage/own-usage.ts';
import { RecordTurns } from './usage/record-turns.ts';

/**
 * The paths at which key holders read the data of their keys: `limitsPath` and paths below it. A browser without a key gets an HTML page at
 * `limitsPath`. A link of an operator opens the page without a secret.
 */
export function createHolderPages(sources: ProcessSources) {
  const { usage, counts, nowMs, bounds } = sources;
  const assets = createHolderAssets();
  const links = createLinks(sources);
  const openByLink = createOpenByLink(links, bounds);
  const buckets = {
    secret: counts.openBucket('limits', holderKeys.limits.name),
    link: counts.openBucket('limits', holderKeys.linkReads.name),
  };
  const ownUsage = usage && { ...usage, turns: new RecordTurns(bounds), nowMs };
  const part: ProcessPart = {
    readKeyMembers: links.readKeyMembers,
    hooks: ({ limitsPath, selfService }) => {
      if (limitsPath === undefined) return {};
      const pageOf = (part: HolderPart) => answerPart(part, { buckets, openByLink, ownUsage });
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
  };
  return { ...part, links };
}

/** Answers with the HTML page if a browser without a key asks for it, and otherwise with data. */
function orPage(page: AnswerPage, data: AnswerPage): AnswerPage {
  return async (exchange, offered, stations) =>
    varying(await (wantsPage(exchange.req) ? page : data)(exchange, offered, stations));
}

interface HolderSources {
  /**
   * The buckets that requests are charged to, by key and by link. A leaked link that is read too often does not keep the holder of the key
   * from reading.
   */
  readonly buckets: { readonly secret: MinuteBucket; readonly link: MinuteBucket };
  readonly openByLink: OpenByLink;
  /** Undefined without a usage record. */
  readonly ownUsage: OwnUsage | undefined;
}

function answerPart(part: HolderPart, sources: HolderSources): AnswerPage {
  return async (exchange, offered, stations) => {
    asMutable(exchange).offered = offered;
    const caller = await (sources.openByLink(exchange) ?? authenticateRequest(exchange, stations));
    switch (caller.kind) {
      case 'opened':
        return answerLink(authenticate(exchange, caller.key), caller.link, { part, stations, sources });
      case 'authenticated':
        return answerHolder(authenticate(exchange, caller.key), part, stations, sources);
      default:
        return sayLink(await refuseUnauthenticated(exchange, stations, caller), exchange);
    }
  };
}

/** Serves data of the calling key, even if the key is banned. The request is charged to a separate bucket, not to the quota. */
async function answerHolder(
  exchange: Authenticated,
  part: HolderPart,
  stations: Stations,
  { buckets, ownUsage }: HolderSources,
): Promise<Ending> {
  let { key } = exchange;
  const charged = await charge(exchange, { part, stations, bucket: buckets.secret, name: key.id });
  if ('kind' in charged) return charged;
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
  if (part !== 'rotate') return answerData(own, part, { stations, ownUsage });
  const data = await rotateOwnSecret(own, stations);
  // Only this response contains the new secret, so no later check may refuse it.
  return data.kind === 'refused' ? refused(own, data.refusal) : answered(own, jsonPage(data.value));
}

/** Serves data of the key whose page a link opens. The key was read for this request. */
async function answerLink(
  exchange: Authenticated,
  link: Link,
  {
    part,
    stations,
    sources: { buckets, ownUsage },
  }: { readonly part: HolderPart; readonly stations: Stations; readonly sources: HolderSources },
): Promise<Ending> {
  const name = link.digest.slice(0, 16);
  const charged = await charge(exchange, { part, stations, bucket: buckets.link, name });
  if ('kind' in charged) return charged;
  if (part !== 'rotate') return answerData(charged, part, { stations, ownUsage, link });
  return refused(charged, {
    code: 'operation_not_allowed',
    message: 'A link only reads. To get a new secret, send a secret of the key.',
  });
}

/** The refusal of a link says that it was a link. A link that ended and an invented one get the same message. */
function sayLink(ending: Ending, { authorization }: Screened): Ending {
  if (ending.kind !== 'refused' || ending.refusal.code !== 'invalid_key' || !isLinkToken(authorization))
    return ending;
  const message = 'This link has ended or is not complete: ask the API team for a new link.';
  return { ...ending, refusal: { ...ending.refusal, message } };
}

/** Charges a request to a bucket, and refuses a wrong method. */
async function charge(
  exchange: Authenticated,
  {
    part,
    stations: { bounds },
    bucket,
    name,
  }: {
    readonly part: HolderPart;
    readonly stations: Stations;
    readonly bucket: MinuteBucket;
    readonly name: string;
  },
): Promise<(Authenticated & Charged) | Ending> {
  const decision = await bucket.charge(name, bounds.limitsReadsPerMinuteMax);
  const charged = withResults(exchange, { decision });
  if (decision.kind === 'refused') {
    return refused(charged, bucketRefusal(decision, 'requests for the limits of this API key'));
  }
  const { method } = exchange.req;
  if (part === 'rotate' && method !== 'POST') return refuseMethod(charged, 'POST');
  if (part !== 'rotate' && !isPageMethod(method)) return refuseMethod(charged);
  return charged;
}

interface ReadingData {
  readonly stations: Stations;
  /** Undefined without a usage record. */
  readonly ownUsage: OwnUsage | undefined;
  /** The link with which the request came, in place of a secret. */
  readonly link?: Link;
}

async function answerData(
  exchange: Authenticated & Charged,
  part: Exclude<HolderPart, 'rotate'>,
  reading: ReadingData,
): Promise<Ending> {
  const { stations, ownUsage, link } = reading;
  if (part === 'limits') return answerLimits(exchange, reading);
  const turn = link === undefined ? exchange.key.id : `link ${link.digest}`;
  const data = await dataOf[part](exchange, { ...stations, ownUsage, turn });
  if (data.kind === 'refused') return refused(exchange, data.refusal);
  return answerUnlessUnread(exchange, jsonPage(data.value), stations.unreadPages);
}

const dataOf = { usage: usageOf, deprecated: deprecatedCallsOf };

async function answerLimits(
  exchange: Authenticated,
  { stations: { limiter, readKeyMembers }, link }: ReadingData,
): Promise<Ending> {
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
        showsBanReason: snapshot.showsBanReason,
        openedBy: link ?? { expiresMs: key.expiry?.atMs, canRotate: canRotate(exchange) },
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
