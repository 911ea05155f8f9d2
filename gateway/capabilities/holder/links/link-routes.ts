import {
  type AdminResponse,
  errorResponse,
  jsonResponse,
  nothingChanged,
  storeUnavailable,
} from '../../../admin/admin-response.ts';
import { defineRoute, type Route } from '../../../admin/api/route.ts';
import { storeFailed } from '../../../admin/keys/change/change-sources.ts';
import { noSuchKey } from '../../../admin/keys/key-sources.ts';
import type { Away } from '../../../redis/redis-reply.ts';
import type { Author } from '../../../shared/model.ts';
import { isoOf } from '../../../shared/schema/dates-and-durations.ts';
import { digestSecret, digestStart } from '../../../shared/secrets.ts';
import { dayMs } from '../../../shared/words/figures.js';
import type { OperatorsSources } from '../../interfaces/operators.ts';
import type { Link } from './link-store.ts';
import { issueToken } from './link-token.ts';
import { type Links, linkView } from './links.ts';
import { type LinksOfKeyShown, linkKeyWire, listLinksWire, unlinkAllWire, unlinkKeyWire } from './wires.ts';

/** The routes with which operators make, list and end the links of a key. */
export function linkRoutes(
  links: Links,
  { settings, keys: { bounds }, recordKeyChange }: OperatorsSources,
): readonly Route[] {
  return [
    defineRoute({
      ...linkKeyWire,
      needs: 'write',
      async respond({ params: { id = '' }, body: { for: lengthMs }, author }) {
        const { limitsPath, stated } = settings();
        const { store } = links;
        if (limitsPath === undefined) return errorResponse('conflict', noPage);
        if (store === undefined) return errorResponse('conflict', noRedis);
        if (lengthMs > bounds.linkMaxMs) {
          const days = bounds.linkMaxMs / dayMs;
          return errorResponse('invalid_request', `The member \`for\` must be at most ${days} days.`);
        }
        const found = await linksOf(id);
        if (found.kind !== 'read') return found.response;
        const { of, stale, nowMs: createdMs } = found;
        if (of.key === undefined || !of.isUsable) return errorResponse('conflict', unusable(id));
        const secret = issueToken(id);
        const { marks } = of;
        const endMs = createdMs + lengthMs;
        const link: Link = { digest: digestSecret(secret), by: author.by, createdMs, endMs, marks };
        const reply = await store.add(id, link, stale);
        if (reply.kind === 'full') {
          const message = `${id} has ${bounds.linksPerKeyMax} links: end one first, or wait until one ends.`;
          return errorResponse('conflict', message);
        }
        const after = { link: digestStart(link.digest), untilAt: isoOf(endMs) };
        const change = { action: 'link', ...author, key: id, after } as const;
        if (reply.kind === 'away') return away(reply, change);
        recordKeyChange(change);
        const url = `${new URL(String(stated.baseUrl)).origin}${limitsPath}#${secret}`;
        return { ...jsonResponse({ id, url, link: linkView(link) }), status: 201 };
      },
    }),
    defineRoute({
      ...listLinksWire,
      needs: 'read',
      async respond({ params: { id = '' } }) {
        const found = await linksOf(id, storeUnavailable());
        return found.kind === 'read' ? jsonResponse(linksView(id, found.open)) : found.response;
      },
    }),
    defineRoute({
      ...unlinkKeyWire,
      needs: 'write',
      async respond({ params: { id = '', digest = '' }, author }) {
        const start = digest.toLowerCase();
        if (!/^[0-9a-f]{8,64}$/.test(start)) {
          return errorResponse('invalid_request', 'The digest in the path must be 8 to 64 hex digits.');
        }
        const found = await linksOf(id);
        if (found.kind !== 'read') return found.response;
        const [ended, ...others] = found.open.filter((link) => link.digest.startsWith(start));
        if (ended === undefined) return errorResponse('not_found', `${id} has no link with this digest.`);
        if (others.length > 0) {
          const message = `Several links of ${id} have a digest that begins with these digits: send more digits.`;
          return errorResponse('conflict', message);
        }
        return remove({ id, ended: [ended], open: found.open, author });
      },
    }),
    defineRoute({
      ...unlinkAllWire,
      needs: 'write',
      async respond({ params: { id = '' }, author }) {
        const found = await linksOf(id);
        if (found.kind !== 'read') return found.response;
        return remove({ id, ended: found.open, open: found.open, author });
      },
    }),
  ];

  async function linksOf(id: string, whenAway = nothingChanged()) {
    const read = await links.read(id);
    if (typeof read === 'object') return read;
    const response = read === 'away' ? whenAway : noSuchKey();
    return { kind: 'refused', response } as const;
  }

  async function remove({
    id,
    ended,
    open,
    author,
  }: {
    readonly id: string;
    readonly ended: readonly Link[];
    readonly open: readonly Link[];
    readonly author: Author;
  }): Promise<AdminResponse> {
    const digests = ended.map(({ digest }) => digest);
    const starts = digests.map(digestStart);
    const change = { action: 'unlink', ...author, key: id, before: { links: starts } } as const;
    const reply = await links.store?.remove(id, digests);
    if (reply?.kind === 'away') return away(reply, change);
    if (ended.length > 0) recordKeyChange(change);
    const rest = open.filter((link) => !ended.includes(link));
    return jsonResponse({ ...linksView(id, rest), ended: starts });
  }

  function away(reply: Away, change: Parameters<typeof recordKeyChange>[0]): AdminResponse {
    const failed = storeFailed(reply);
    if (reply.mayHaveRun) recordKeyChange({ ...change, error: failed.message });
    return failed.response;
  }
}

function linksView(id: string, open: readonly Link[]): LinksOfKeyShown {
  return { id, links: open.map(linkView) };
}

const noPage = 'A link opens the page of key holders, which needs the setting `limitsPath`.';
const noRedis = 'Links are in Redis: write `redis` into the configuration, and restart the gateway.';

function unusable(id: string): string {
  return `${id} is disabled, or has no valid secret, or its plan is not in the configuration. A link opens its page only when a secret would.`;
}
