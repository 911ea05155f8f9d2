import { isSecureUrl } from '../../../shared/addresses/secure-url.ts';
import { adviceOnName } from '../../../shared/schema/closest-name.ts';
import { nameOf } from '../../../shared/schema/schema-faults.ts';
import { digestSecret, digestStart } from '../../../shared/secrets.ts';
import type { SettingPath, SettingsPart } from '../../interfaces/configuration.ts';
import { readReceivers } from './receiver-secrets.ts';
import type { Receiver } from './receivers.ts';
import type { StatedReceiver } from './schema.ts';

declare module '../../../shared/model.ts' {
  interface SettingsMembers {
    /** The receivers of webhooks. */
    readonly notify: readonly Receiver[];
  }
}

export const webhooksSettings: SettingsPart = {
  /** Checks the rules of `notify` that the schema cannot express. No message repeats a URL, because a URL may contain a token. */
  *faults({ notify }, { planNames, canMatch }) {
    const urls = new Map<string, SettingPath>();
    for (const [index, stated] of notify.entries()) {
      const { url, events, at, plans = [] } = stated;
      const path = ['notify', index];
      const urlPath = [...path, 'url'];
      const fault = urlFault(url);
      if (fault !== undefined) yield { path: urlPath, message: `${nameOf(urlPath)} ${fault}` };
      const { href } = new URL(url);
      const first = urls.get(href);
      if (first === undefined) urls.set(href, urlPath);
      else {
        const message = `${nameOf(urlPath)}: this URL is already taken by ${nameOf(first)}; each must be unique`;
        yield { path: urlPath, message, related: first };
      }
      if (at !== undefined && !events.includes('quota.threshold')) {
        const message = `\`notify[${index}].at\` needs \`quota.threshold\` in \`events\``;
        yield { path: [...path, 'at'], isName: true, message };
      }
      for (const [place, type] of events.entries()) {
        const never = filterNames.find((name) => stated[name] && !canMatch(type, name));
        if (never === undefined) continue;
        const eventPath = [...path, 'events', place];
        const message = `${nameOf(eventPath)}: no event of the type \`${type}\` matches \`${never}\`; remove one of both, or add a receiver`;
        yield { path: eventPath, message };
      }
      for (const [place, name] of plans.entries()) {
        if (planNames.includes(name)) continue;
        const planPath = [...path, 'plans', place];
        const message = `${nameOf(planPath)} names no plan; ${adviceOnName(name, planNames, 'plans')}`;
        yield { path: planPath, message };
      }
    }
  },

  needsRedis({ notify }) {
    if (notify.length === 0) return [];
    const lost = 'a restart would lose the events that wait for their delivery';
    return [{ path: ['notify'], lost, instead: 'remove `notify`' }];
  },

  operationsIn: ({ notify }) =>
    notify.map(({ operations }, index) => ({ path: ['notify', index, 'operations'], operations })),

  /**
   * Warns of keys in filters that the configuration does not have. They are no faults, because a key may be removed without an edit of the
   * receivers.
   */
  *warnings({ notify }, { hasDirectory, hasKey }) {
    if (hasDirectory) return;
    for (const [index, { keys = [] }] of notify.entries()) {
      for (const [place, id] of keys.entries()) {
        const path = ['notify', index, 'keys', place];
        if (!hasKey(id))
          yield { path, message: `${nameOf(path)} names no key, so the receiver gets no event for it` };
      }
    }
  },

  compile: ({ notify }, files) => ({ notify: readReceivers(notify, files) }),

  thresholds: ({ notify }) => notify.flatMap(({ at }) => at),

  shown: ({ notify }, stated) => ({
    notify: notify.map((receiver, index) => receiverView(Object(stated.notify)[index], receiver)),
  }),

  lists: { notify: { by: 'id', noun: 'receiver' } },
};

const filterNames = ['keys', 'plans', 'operations'] as const;

/** Shows what a receiver gets in its effective form, because the form that the configuration states may omit or repeat entries. */
function receiverView(stated: object, receiver: Receiver) {
  const { id, url: _, secrets, ...effective } = receiver;
  const secretDigestStarts = secrets.map((secret) => digestStart(digestSecret(secret)));
  return { id, ...stated, ...effective, secretDigestStarts };
}

/**
 * Completes a sentence that begins with the name of the URL; undefined for a sound URL.
 *
 * @throws a TypeError for a text that is not a URL
 */
export function urlFault(text: StatedReceiver['url']): string | undefined {
  const url = new URL(text);
  if (!isSecureUrl(url)) return 'must begin with https://; only a loopback address may have http://';
  if (url.username !== '' || url.password !== '') {
    return 'must have no user and no password; the signature proves that a delivery comes from the gateway';
  }
  return text.includes('#') ? 'must have no fragment (#), because HTTP does not send a fragment' : undefined;
}
