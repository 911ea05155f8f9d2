import { lookup } from 'node:dns/promises';
import { isIP } from 'node:net';
import type { ValidSettings } from '../../config/load-settings.ts';
import { bareHostname } from '../../shared/addresses/address-group.ts';
import { withinDeadline } from '../../shared/structures/within-deadline.ts';
import { defaultBounds } from '../../shared/timeouts-and-sizes.ts';

/**
 * Resolves the host name of each upstream, and returns a sentence for each failure. Only the command `check` uses this function.
 * During an outage of DNS, the gateway must still start, and edits must still take effect.
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

/** Resolves a name as the gateway does. Returns the resolver's error code, or reports that the lookup took too long. */
async function lookupFailure(hostname: string, timeoutMs: number): Promise<string | undefined> {
  if (isIP(hostname) !== 0) return undefined;
  const looked = lookup(hostname, { all: true }).then(
    () => undefined,
    (error: unknown) => (error instanceof Error && 'code' in error ? String(error.code) : String(error)),
  );
  return withinDeadline(looked, timeoutMs, () => `not within ${timeoutMs} ms`);
}
