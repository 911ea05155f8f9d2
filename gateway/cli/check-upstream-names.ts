import { lookup } from 'node:dns/promises';
import { isIP } from 'node:net';
import type { ValidSettings } from '../config/load-settings.ts';
import { bareHostname } from '../shared/address-group.ts';
import { withinDeadline } from '../shared/structures/within-deadline.ts';
import { defaultBounds } from '../shared/timeouts-and-sizes.ts';

/**
 * Looks up the host name of each upstream, and returns a sentence for each failure. Only `check` does this: the gateway must
 * start, and an edit must take effect, also during an outage of DNS.
 */
export async function checkUpstreamNames({ upstreamUrls }: ValidSettings): Promise<readonly string[]> {
  const { checkLookupTimeoutMs: timeoutMs } = defaultBounds;
  const found = await Promise.all(
    upstreamUrls.map(async ({ url, place: { file, line, column } }) => {
      const hostname = bareHostname(new URL(url));
      const reason = await lookupFailure(hostname, timeoutMs);
      if (reason === undefined) return [];
      const hint = 'a typing error, or a name that is known only where the gateway runs?';
      return [
        `${file}:${line}:${column}: the host \`${hostname}\` cannot be looked up here (${reason}): ${hint}`,
      ];
    }),
  );
  return found.flat();
}

/** Looks a name up like the gateway. Returns the error code of the resolver, or that the lookup took too long. */
async function lookupFailure(hostname: string, timeoutMs: number): Promise<string | undefined> {
  if (isIP(hostname) !== 0) return undefined;
  const looked = lookup(hostname, { all: true }).then(
    () => undefined,
    (error: unknown) => (error instanceof Error && 'code' in error ? String(error.code) : String(error)),
  );
  return withinDeadline(looked, timeoutMs, () => `not within ${timeoutMs} ms`);
}
