import { kindOf, type Notice } from '../../../fleet/kinds/kinds.ts';
import { maskSecrets } from '../../../shared/secrets.ts';
import type { Bounds } from '../../../shared/timeouts-and-sizes.ts';
import type { WebhookEventType } from '../../../shared/words/event-names.js';

/** The body of a webhook. The body contains ids, and neither a secret nor a complete digest. */
export interface EventBody {
  readonly type: WebhookEventType;
  /** The time of the event, ISO 8601 in UTC. */
  readonly timestamp: string;
  /** `text` is the event in one sentence. `notListed` is the number of list entries that were omitted because the body has a maximum size. */
  readonly data: Readonly<Record<string, unknown>> & { readonly text: string; readonly notListed?: number };
}

/**
 * Makes the event of a notice; undefined if receivers get no event. The JSON text of the event has at most `webhookBodyBytesMax` octets.
 *
 * @param atMs the time of the event, epoch ms
 */
export function makeEventBody(notice: Notice, atMs: number, bounds: Bounds): EventBody | undefined {
  const { webhook, ...kind } = kindOf(notice);
  const type = webhook?.typeOf(notice);
  if (webhook === undefined || type === undefined) return undefined;
  const timestamp = new Date(atMs).toISOString();
  const text = kind.text(notice, atMs);
  const { notListed: more = 0, ...members } = webhook.members(notice);
  const { list: name = '' } = webhook;
  const list = members[name];
  const items: readonly unknown[] = Array.isArray(list) ? list : [];
  const build = (charsMax: number, listed: number): EventBody => {
    const notListed = items.length - listed + more;
    const ofList = list === undefined ? {} : { [name]: items.slice(0, listed) };
    const data = { ...members, ...ofList, ...(notListed > 0 && { notListed }), text };
    return { type, timestamp, data: safely(data, charsMax) };
  };
  const fits = (body: EventBody) => Buffer.byteLength(JSON.stringify(body)) <= bounds.webhookBodyBytesMax;
  for (let charsMax = bounds.webhookTextCharsMax; ; charsMax = Math.floor(charsMax / 2)) {
    for (let listed = Math.min(items.length, bounds.webhookListMax); ; listed = Math.floor(listed * 0.9)) {
      const body = build(charsMax, listed);
      if (fits(body) || charsMax === 0) return body;
      if (listed === 0) break;
    }
  }
}

/** The ids that operators have chosen. An id may look like a digest, and a receiver needs the whole id. */
const idMembers: ReadonlySet<string> = new Set(['key', 'plan', 'operation', 'upstream']);

/** Cuts every text, and masks every text that is not an id. */
function safely(data: EventBody['data'], charsMax: number): EventBody['data'] {
  const safe = (value: unknown, name = ''): unknown => {
    if (typeof value === 'string') return cut(idMembers.has(name) ? value : maskSecrets(value), charsMax);
    if (Array.isArray(value)) return value.map((entry) => safe(entry));
    if (typeof value !== 'object' || value === null) return value;
    return Object.fromEntries(Object.entries(value).map(([name, member]) => [name, safe(member, name)]));
  };
  return safe(data) as EventBody['data'];
}

function cut(text: string, charsMax: number): string {
  return text.length > charsMax ? `${text.slice(0, charsMax)}…` : text;
}
