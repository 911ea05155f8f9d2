import { isDeepStrictEqual } from 'node:util';
import type * as z from 'zod';
import type { ChangedMembers, KeyAction } from '../../../fleet/changes.ts';
import { inForceForDirectory } from '../../../keys/key-table.ts';
import { limitPath, toLimitFields, toLimits } from '../../../keys/limits/limit-fields.ts';
import { compileKey } from '../../../keys/plans/compile-key.ts';
import { countingStrikes } from '../../../quota/bans.ts';
import { shownGrant } from '../../../quota/grants.ts';
import { byHandIn } from '../../../request/limit/decision-at.ts';
import { groupNames, maxOf } from '../../../shared/limits.ts';
import type { Grant, Key, KeyStatus } from '../../../shared/model.ts';
import { isoOf } from '../../../shared/schema/dates-and-durations.ts';
import { exemptionMembers, statedExemptions } from '../../../shared/schema/exemptions.ts';
import { type AdminResponse, errorResponse, jsonResponse, nothingChanged } from '../../admin-response.ts';
import { defineRoute, type Route } from '../../api/route.ts';
import {
  banKeyWire,
  type grantBody,
  grantKeyWire,
  unbanKeyWire,
  ungrantKeyWire,
  type whatHolds,
} from '../../wires/keys/bans-and-grants.ts';
import { banAndGrant } from '../key-item.ts';
import {
  type ChangeRequest,
  findInDirectory,
  type KeyChangeSources,
  type Refused,
  refused,
  type StoreReply,
  storeFailed,
} from './change-sources.ts';

interface Verb {
  readonly kind: 'verb';
  readonly action: KeyAction;
  readonly run: (keyId: string) => Promise<StoreReply>;
  /** Whether the key already is as the change would leave it. The change is then neither made nor recorded. */
  readonly isDone?: (status: KeyStatus) => boolean;
  /** The reason why the key's status does not allow the change; undefined if it does. */
  readonly obstacle?: (status: KeyStatus) => string | undefined;
  /** Returns the part of the key's status that the route changes, for the record of changes. */
  readonly before: (status: KeyStatus) => ChangedMembers;
  readonly after?: ChangedMembers;
  /** Returns additional members of the response. These members describe the key before the change. */
  readonly tells?: (status: KeyStatus) => Pick<z.output<typeof whatHolds>, 'wasBanned'>;
}

/** Bans and grants are stored with the counts of a key, so these routes treat keys of the configuration and of the directory alike. */
export function banAndGrantRoutes(sources: KeyChangeSources): readonly Route[] {
  const { limiter } = sources;
  return [
    defineRoute({
      ...unbanKeyWire,
      needs: 'write',
      respond: (request) =>
        change(sources, request, () => ({
          kind: 'verb',
          action: 'unban',
          run: (keyId) => limiter.adjust(keyId, { lift: true, bans: sources.settings().bans }),
          before: bannedUntil,
          tells: ({ rateLimit: { ban } }) => ({ wasBanned: ban !== undefined }),
        })),
    }),
    defineRoute({
      ...banKeyWire,
      needs: 'write',
      respond: ({ body: { untilAt: untilMs, reason }, ...request }) =>
        change(sources, request, () => {
          const fault = untilFault(sources, untilMs);
          if (fault !== undefined) return refused('invalid_request', fault);
          const ban = { untilMs, reason };
          return {
            kind: 'verb',
            action: 'ban',
            run: (keyId) => limiter.adjust(keyId, { ban, bans: sources.settings().bans }),
            isDone: ({ rateLimit }) =>
              rateLimit.ban?.untilMs === untilMs && rateLimit.ban.byHand?.reason === reason,
            obstacle: ({ rateLimit }) => longerBan(rateLimit, untilMs),
            before: bannedUntil,
            after: { untilAt: isoOf(untilMs), reason },
          };
        }),
    }),
    defineRoute({
      ...grantKeyWire,
      needs: 'write',
      respond: ({ body, ...request }) =>
        change(sources, request, (key) => {
          const fault = grantFault(sources, key, body);
          if (fault !== undefined) return refused('invalid_request', fault);
          const { fromAt = 0, untilAt: untilMs } = body;
          const fromMs = fromAt > sources.nowMs() ? fromAt : undefined;
          const grant: Grant = {
            limits: toLimits(body.limits ?? {}),
            fromMs,
            untilMs,
            ...statedExemptions(body),
          };
          return {
            kind: 'verb',
            action: 'grant',
            run: (keyId) => limiter.adjust(keyId, { grant }),
            isDone: ({ grant: earlier }) =>
              isDeepStrictEqual(grantMembers({ grant: earlier }), grantMembers({ grant })),
            obstacle: ({ grant: earlier }) => otherGrant(key, earlier, grant),
            before: grantMembers,
            after: grantMembers({ grant }),
          };
        }),
    }),
    defineRoute({
      ...ungrantKeyWire,
      needs: 'write',
      respond: (request) =>
        change(sources, request, () => ({
          kind: 'verb',
          action: 'ungrant',
          run: (keyId) => limiter.adjust(keyId, { grant: 'none' }),
          isDone: ({ grant }) => grant === undefined,
          before: grantMembers,
        })),
    }),
  ];
}

async function findKey(
  sources: KeyChangeSources,
  { params: { id = '' } }: ChangeRequest,
): Promise<{ readonly kind: 'found'; readonly key: Key } | Refused> {
  const settings = sources.settings();
  const written = settings.keys.get(id);
  if (written !== undefined) return { kind: 'found', key: written };
  const found = await findInDirectory(sources, id);
  if (found.kind === 'refused') return found;
  const key = compileKey(found.key, inForceForDirectory(settings, sources.nowMs()));
  if (key !== undefined) return { kind: 'found', key };
  return refused('conflict', `The plan of ${id}, ${found.key.plan}, is not in the configuration any more.`);
}

async function change(
  sources: KeyChangeSources,
  request: ChangeRequest,
  verbFor: (key: Key) => Verb | Refused,
): Promise<AdminResponse> {
  const found = await findKey(sources, request);
  if (found.kind === 'refused') return found.response;
  const { key } = found;
  const verb = verbFor(key);
  if (verb.kind === 'refused') return verb.response;
  const { action, run, isDone, obstacle, before, after, tells } = verb;
  const { readStatus, record, settings } = sources;
  const [earlier] = (await readStatus([key])) ?? [];
  if (earlier === undefined) return nothingChanged();
  if (isDone?.(earlier)) {
    const { rateLimit } = earlier;
    const held = {
      id: key.id,
      isUnchanged: true,
      strikes: countingStrikes(earlier, settings().bans, rateLimit.nowMs),
      ...banAndGrant({ ...earlier, ban: rateLimit.ban }),
    };
    return jsonResponse(held satisfies z.output<typeof whatHolds>);
  }
  const reason = obstacle?.(earlier);
  if (reason !== undefined) return errorResponse('conflict', reason);
  const reply = await run(key.id);
  const changed = { action, ...request.author, key: key.id, before: before(earlier), after };
  if (reply.kind === 'changed') {
    record(changed);
    const { bannedUntilMs, banLevel, grant } = reply.state;
    return jsonResponse({
      id: key.id,
      ...tells?.(earlier),
      strikes: countingStrikes(reply.state, settings().bans, reply.nowMs),
      ...banAndGrant({
        ban: bannedUntilMs > reply.nowMs ? { untilMs: bannedUntilMs, ...byHandIn(reply.state) } : undefined,
        banLevel,
        grant: shownGrant(grant, reply.nowMs),
      }),
    } satisfies z.output<typeof whatHolds>);
  }
  const failed = storeFailed(reply);
  if (reply.mayHaveRun) record({ ...changed, error: failed.message });
  return failed.response;
}

function bannedUntil({ rateLimit: { ban } }: KeyStatus): ChangedMembers {
  return ban === undefined ? {} : { bannedUntilAt: isoOf(ban.untilMs) };
}

function longerBan({ ban }: KeyStatus['rateLimit'], untilMs: number): string | undefined {
  if (ban === undefined || ban.untilMs <= untilMs) return undefined;
  return `The key is banned until ${isoOf(ban.untilMs)} already, which is later: lift this ban first.`;
}

function grantMembers({ grant }: { readonly grant?: Grant | undefined }): ChangedMembers {
  if (grant === undefined) return {};
  const { limits, fromMs, untilMs } = grant;
  return {
    limits: limits.length > 0 ? toLimitFields(limits) : undefined,
    ...exemptionMembers(grant),
    fromAt: isoOf(fromMs),
    untilAt: isoOf(untilMs),
  };
}

/**
 * Returns an error if one of the two grants applies now and the other grant starts later. A key has only one grant, so
 * the new grant would replace the present grant immediately.
 */
function otherGrant({ id }: Key, earlier: Grant | undefined, grant: Grant): string | undefined {
  if (earlier === undefined || (earlier.fromMs === undefined) === (grant.fromMs === undefined))
    return undefined;
  const { fromAt, untilAt } = grantMembers({ grant: earlier });
  const from = fromAt === undefined ? '' : ` from ${fromAt}`;
  return `${id} has a grant${from} until ${untilAt}, which the new grant would replace now: end the present grant first.`;
}

function untilFault(
  { nowMs, bounds }: Pick<KeyChangeSources, 'nowMs' | 'bounds'>,
  untilAt: number,
): string | undefined {
  const aheadMs = untilAt - nowMs();
  if (aheadMs <= 0) return 'The member `untilAt` must be in the future.';
  if (aheadMs <= bounds.grantMaxMs) return undefined;
  return `The member \`untilAt\` must be at most ${bounds.grantMaxMs / 86_400_000} days ahead.`;
}

function grantFault(
  { nowMs, bounds }: Pick<KeyChangeSources, 'nowMs' | 'bounds'>,
  key: Key,
  { limits: stated, fromAt, untilAt }: z.output<typeof grantBody>,
): string | undefined {
  if (fromAt !== undefined && fromAt >= untilAt) return 'The member `fromAt` must be earlier than `untilAt`.';
  const fault = untilFault({ nowMs, bounds }, untilAt);
  if (fault !== undefined) return fault;
  const other = toLimits(stated ?? {}).find((limit) => maxOf(key.limits, limit) === undefined);
  if (other === undefined) return undefined;
  const groups = groupNames(key.limits);
  if (other.group !== undefined && !groups.includes(other.group)) {
    const known =
      groups.length === 0
        ? 'has no groups'
        : `has the ${groups.length === 1 ? 'group' : 'groups'} ${groups.join(', ')}`;
    return `The member \`limits.groups.${other.group}\` names a group that ${key.id} (${key.plan}) does not have. ${key.id} ${known}.`;
  }
  const limited = key.limits.map(limitPath).join(', ');
  return `The member \`limits.${limitPath(other)}\` names a window in which ${key.id} (${key.plan}) has no limit. The limits of ${key.id} are ${limited}.`;
}
