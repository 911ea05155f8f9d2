import { capabilityKinds } from '../../capabilities/lists/events.ts';
import { type WebhookEventType, webhookEventTypes } from '../../shared/words/event-names.js';
import { type BanNotice, banKinds } from './bans.ts';
import { type DeadSecretUsed, deadSecretKinds } from './dead-secrets.ts';
import { type KeyChanged, keyChangeKinds } from './key-changes.ts';
import { type KeyNotice, keyNoticeKinds } from './key-notices.ts';
import type { Entry, Kind, Kinds, ListedKind, ListedKinds } from './kind.ts';
import { type OperationSunset, operationKinds } from './operations.ts';
import { type PlanChanged, planKinds } from './plans.ts';
import { type ProcessEvent, processKinds } from './processes.ts';
import { type ReloadEvent, reloadKinds } from './reloads.ts';
import { type DataLost, type StoreEvent, storeKinds } from './stores.ts';
import { type TargetEvent, targetKinds } from './targets.ts';
import { type UpstreamFailureEvent, upstreamKinds } from './upstreams.ts';

/** A notice of an event that the list of events shows. */
export type Happening =
  | BanNotice
  | StoreEvent
  | DataLost
  | TargetEvent
  | UpstreamFailureEvent
  | KeyChanged
  | DeadSecretUsed
  | ProcessEvent
  | NoticeOf<(typeof capabilityKinds)[keyof typeof capabilityKinds]>
  | ReloadEvent;

type NoticeOf<Of> = Of extends ListedKind<infer One, never> ? One : never;

export type Notice = Happening | KeyNotice | OperationSunset | PlanChanged;

export type EventKind = Happening['kind'];

/** Times are ISO 8601 in UTC. */
export interface GatewayEvent extends Entry {
  readonly kind: EventKind;
  /** One sentence. */
  readonly text: string;
  /** Unlisted events of this kind that this entry summarises. */
  readonly count?: number;
}

/** In the order of the API's document. */
const listedKinds: ListedKinds<Happening> = {
  ...banKinds,
  ...storeKinds,
  ...targetKinds,
  ...upstreamKinds,
  ...keyChangeKinds,
  ...deadSecretKinds,
  ...processKinds,
  ...capabilityKinds,
  ...reloadKinds,
};

const kinds: Kinds<Notice> = { ...listedKinds, ...keyNoticeKinds, ...operationKinds, ...planKinds };

export const eventKinds = Object.keys(listedKinds) as EventKind[];

export function kindOf(notice: Notice): Kind<Notice> {
  return kinds[notice.kind];
}

export function listedKind(name: EventKind): ListedKind<Happening> {
  return listedKinds[name];
}

/** Whether a name is a kind of this version. */
export function isEventKind(name: string): name is EventKind {
  return Object.hasOwn(listedKinds, name);
}

/** Only receivers get the other notices. */
export function isHappening(notice: Notice): notice is Happening {
  return isEventKind(notice.kind);
}

/** Undefined if receivers get no event. */
export function webhookTypeOf(notice: Notice): WebhookEventType | undefined {
  return kindOf(notice).webhook?.typeOf(notice);
}

/** In the order of their types. @param nowMs the time of the events, epoch ms */
export function exampleNotices(nowMs: number): readonly Notice[] {
  const examples = Object.values<Kind<Notice>>(kinds).flatMap((kind) => kind.webhook?.examples(nowMs) ?? []);
  return webhookEventTypes.flatMap((type) => examples.filter((notice) => webhookTypeOf(notice) === type));
}

export const kindsByType: ReadonlyMap<WebhookEventType | undefined, Kind<Notice>> = new Map(
  exampleNotices(0).map((notice) => [webhookTypeOf(notice), kindOf(notice)]),
);
