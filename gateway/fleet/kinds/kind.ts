import type * as z from 'zod';
import type { WebhookEventType } from '../../shared/words/event-names.js';

/**
 * All that the gateway knows about one kind of event, except for the code that detects it. A process that detects an event makes a
 * *notice*, and several processes may make a notice of the same event. No notice contains a secret or a complete digest.
 *
 * `Family` are the notices of the file that defines the kind.
 */
export interface Kind<Notice, Family = Notice> extends About<Notice> {
  /**
   * The event in one sentence, with ids and without secrets. Times are UTC.
   *
   * @param nowMs epoch ms
   * @param begun the notice that began the outage, if this notice ends an outage
   */
  text(notice: Notice, nowMs: number, begun?: Family): string;
  /** Notices with the same identity become one event. */
  identity(notice: Notice): Identity;
  /** Absent if receivers of webhooks get no event. */
  readonly webhook?: Webhook<Notice>;
  /** Absent if only receivers get the event. */
  readonly list?: Listing<Notice>;
}

export interface ListedKind<Notice, Family = Notice> extends Kind<Notice, Family> {
  readonly list: Listing<Notice>;
}

export type Kinds<Family extends { readonly kind: string }> = {
  readonly [Name in Family['kind']]: Kind<Extract<Family, { readonly kind: Name }>, Family>;
};

export type ListedKinds<Family extends { readonly kind: string }> = {
  readonly [Name in Family['kind']]: ListedKind<Extract<Family, { readonly kind: Name }>, Family>;
};

type Filter = 'keys' | 'plans' | 'operations';

/** For the filters of receivers. */
export interface About<Notice> {
  /** Filters that can match an event of this kind. */
  readonly filters: readonly Filter[];
  /** The plan is the plan of the key, or the plan that the event is about. */
  about(notice: Notice): {
    readonly key?: string | undefined;
    readonly plan?: string | undefined;
    readonly operation?: string | undefined;
  };
  /** Such as a key or a target. A receiver gets the events of one subject in their order. */
  subject(notice: Notice): string;
}

export const aboutKey: About<{ readonly keyId: string; readonly plan: string | undefined }> = {
  filters: ['keys', 'plans'],
  about: ({ keyId, plan }) => ({ key: keyId, plan }),
  subject: ({ keyId }) => `key ${keyId}`,
};

export const aboutPlan: About<{ readonly plan: string }> = {
  filters: ['plans'],
  about: ({ plan }) => ({ plan }),
  subject: ({ plan }) => `plan ${plan}`,
};

/** For events that no filter matches. */
export const aboutNoKey = { filters: [], about: () => ({}) };

/**
 * - `once`: the event happens once. Processes report it until `untilMs` (epoch ms), or for a short time if `untilMs` is absent. A process
 *   without Redis reports it later.
 * - `near`: reports of several processes are one event if the time between them is within a bound. A second report by the same process is
 *   another event: a target may be down twice within a few seconds.
 * - `own`: only one process reports the event.
 */
type Identity =
  | { readonly kind: 'once'; readonly what: readonly unknown[]; readonly untilMs?: number }
  | {
      readonly kind: 'near';
      readonly what: readonly unknown[];
      readonly within: 'eventsMergedWithinMs' | 'changesMergedWithinMs';
    }
  | { readonly kind: 'own' };

interface Listing<Notice> {
  readonly group: EventGroup;
  /** "and 312 more keys were banned". */
  readonly many: string;
  /** Without the kind and the text. */
  entry(notice: Notice): Entry;
}

/** Faults, bans, and operators' changes. */
export const eventGroups = ['incident', 'ban', 'change'] as const;
export type EventGroup = (typeof eventGroups)[number];

/** Times are ISO 8601 in UTC. */
export interface Entry {
  readonly key?: string | undefined;
  readonly plan?: string | undefined;
  readonly upstream?: string;
  readonly target?: string;
  /** The affected server of a Redis Cluster. */
  readonly server?: string | undefined;
  /** The beginning of an outage that has ended. */
  readonly beganAt?: string;
  /** The end of an outage that was reported later. */
  readonly endedAt?: string | undefined;
  /** The end of a ban, or of a certificate's validity. */
  readonly untilAt?: string;
}

export type Zod = typeof z;

export interface Webhook<Notice> {
  /** Undefined if receivers get no event. One kind may have several types. */
  typeOf(notice: Notice): WebhookEventType | undefined;
  /** When the gateway sends each type: sentences for the reference. */
  readonly when: Readonly<Partial<Record<WebhookEventType, string>>>;
  /** The schema of `data`. A running gateway needs no schema of its events, so it does not load Zod for them. */
  data(zod: Zod): z.ZodObject;
  /** The last member of `data`, a list that is shortened if the body is too large. */
  readonly list?: string;
  /** The members of `data`, except for `text`. `notListed` is the number of entries that the notice does not have. */
  members(notice: Notice): WebhookMembers;
  /** An example of each type, for `tollgate notify test`, without data of a real key. @param nowMs the time of the events, epoch ms */
  examples(nowMs: number): readonly Notice[];
}

type WebhookMembers = Readonly<Record<string, unknown>> & { readonly notListed?: number | undefined };

/** The compiler compares the members with the schema. */
export function webhook<Notice, Shape extends z.ZodRawShape>({
  data,
  ...definition
}: Omit<Webhook<NoInfer<Notice>>, 'data' | 'list' | 'members'> & {
  data(zod: Zod): Shape;
  readonly list?: keyof Shape & string;
  members(notice: NoInfer<Notice>): NoInfer<z.input<z.ZodObject<Shape>>> & Pick<WebhookMembers, 'notListed'>;
}): Webhook<Notice> {
  return { ...definition, data: (z) => z.strictObject({ ...data(z), ...commonMembers(z) }) };
}

const commonMembers = (z: Zod) => ({
  notListed: z
    .int()
    .positive()
    .optional()
    .describe('The number of list entries that were omitted, because the body has a maximum size.'),
  text: z.string().describe('The event in one sentence.'),
});

export const exampleKey = { keyId: 'example', plan: 'free' } as const;
export const exampleDigestStart = '9f86d081';
export const exampleVersions = { before: '1c8f3a5b7d90', after: '7e2d4f6a8b01' } as const;
