import type { StatedReceiver } from '../../notify/notify-schema.ts';
import { isSecureUrl } from '../../shared/addresses/secure-url.ts';
import type { Problem } from '../problems/problem.ts';
import { createProblemList, createUniqueValues } from '../problems/problem-list.ts';
import type { RawSettings } from '../schema/settings-schema.ts';
import type { YamlSource } from '../source/parse-yaml.ts';

/** Checks the rules of `notify` that the schema cannot express. No message repeats a URL, because a URL may contain a token. */
export function checkReceivers({ notify }: RawSettings, source: YamlSource): readonly Problem[] {
  const problems = createProblemList();
  const urls = createUniqueValues({ what: 'this URL', source, problems });
  notify.forEach(({ url, events, at }, index) => {
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
  });
  return problems.problems;
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
