import { kindsByType } from '../../fleet/kinds/kinds.ts';
import type { StatedReceiver } from '../../notify/notify-schema.ts';
import { isSecureUrl } from '../../shared/addresses/secure-url.ts';
import type { Keys } from '../../shared/model.ts';
import { adviceOnName } from '../../shared/schema/closest-name.ts';
import { nameOf } from '../../shared/schema/schema-faults.ts';
import type { Problem } from '../problems/problem.ts';
import { createProblemList, createUniqueValues } from '../problems/problem-list.ts';
import type { RawSettings } from '../schema/settings-schema.ts';
import type { YamlSource } from '../source/parse-yaml.ts';

/** Checks the rules of `notify` that the schema cannot express. No message repeats a URL, because a URL may contain a token. */
export function checkReceivers({ notify, plans }: RawSettings, source: YamlSource): readonly Problem[] {
  const problems = createProblemList();
  const urls = createUniqueValues({ what: 'this URL', source, problems });
  notify.forEach((stated, index) => {
    const { url, events, at } = stated;
    const path = ['notify', index];
    const fault = urlFault(url);
    if (fault !== undefined) {
      problems.add(() => ({
        ...source.placeOf([...path, 'url']),
        message: `\`notify[${index}].url\` ${fault}`,
      }));
    }
    urls.claim(new URL(url).href, [...path, 'url']);
    if (at !== undefined && !events.includes('quota.threshold')) {
      const message = `\`notify[${index}].at\` needs \`quota.threshold\` in \`events\``;
      problems.add(() => ({ ...source.placeOf([...path, 'at'], 'name'), message }));
    }
    events.forEach((type, place) => {
      const filters = kindsByType.get(type)?.filters ?? [];
      const never = filterNames.find((name) => stated[name] && !filters.includes(name));
      if (never === undefined) return;
      const eventPath = [...path, 'events', place];
      const message = `${nameOf(eventPath)}: no event of the type \`${type}\` matches \`${never}\`; remove one of both, or add a receiver`;
      problems.add(() => ({ ...source.placeOf(eventPath), message }));
    });
    stated.plans?.forEach((name, place) => {
      if (Object.hasOwn(plans, name)) return;
      const planPath = [...path, 'plans', place];
      const message = `${nameOf(planPath)} names no plan; ${adviceOnName(name, Object.keys(plans), 'plans')}`;
      problems.add(() => ({ ...source.placeOf(planPath), message }));
    });
  });
  return problems.problems;
}

const filterNames = ['keys', 'plans', 'operations'] as const;

/**
 * Warns of keys in filters that the configuration does not have. They are no problems, because a key may be removed without an edit of the
 * receivers.
 */
export function warnOfFilters({ notify }: RawSettings, source: YamlSource, keys: Keys): readonly string[] {
  return notify.flatMap(({ keys: ids = [] }, index) =>
    ids.flatMap((id, place) => {
      if (keys.has(id)) return [];
      const path = ['notify', index, 'keys', place];
      const { file, line, column } = source.placeOf(path);
      return [
        `${file}:${line}:${column}: ${nameOf(path)} names no key, so the receiver gets no event for it`,
      ];
    }),
  );
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
