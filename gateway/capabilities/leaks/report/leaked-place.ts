import type { Leak } from '../../../shared/model.ts';
import { printable } from '../../../shared/terminal/printable.ts';
import type { Bounds } from '../../../shared/timeouts-and-sizes.ts';

/** The place where a secret was found, as a report states it. */
export type LeakedPlace = Pick<Leak, 'url' | 'source' | 'type'>;

/**
 * Makes the texts of a report safe to store and to show. A scanner copies these texts from the place where the secret was found, so an
 * attacker who published the secret may have chosen them. The texts lose every secret, every control character, and every character beyond their limit.
 *
 * @param secret the reported secret, which the address of the place may contain
 */
export function leakedPlace(
  stated: LeakedPlace,
  secret: string | undefined,
  { leakUrlCharsMax, leakWordCharsMax }: Pick<Bounds, 'leakUrlCharsMax' | 'leakWordCharsMax'>,
): LeakedPlace {
  return {
    url: clean(stated.url, secret, leakUrlCharsMax),
    source: clean(stated.source, secret, leakWordCharsMax),
    type: clean(stated.type, secret, leakWordCharsMax),
  };
}

/** Matches a secret or a token of Tollgate, also one that is incomplete or follows a letter, as in `key%3Dtg_…`. */
const secretLike = /tg[al]?_\w{8,}/g;

/** Secrets are removed before the text is shortened, because a shortened secret would no longer be recognised. */
function clean(stated: string | undefined, secret: string | undefined, charsMax: number): string | undefined {
  if (stated === undefined || stated === '') return undefined;
  let text = stated.replace(secretLike, '…');
  if (secret !== undefined && secret !== '') {
    text = text.replaceAll(secret, '…').replaceAll(encodeURIComponent(secret.toWellFormed()), '…');
  }
  const shown = printable(text.slice(0, charsMax)).replaceAll('\n', ' ');
  return shown.length < charsMax ? shown : `${shown.slice(0, charsMax - 1)}…`;
}
