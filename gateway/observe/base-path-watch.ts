import type { Logger } from 'pino';
import type { Exchange } from '../request/exchange.ts';
import type { Bounds } from '../shared/timeouts-and-sizes.ts';

/** A first segment that the log may show. A longer segment may be a secret that a client put into the path by mistake. */
const shownSegment = /^\/([A-Za-z0-9._~-]{1,20})(?=\/|$)/;

/**
 * Logs a hint when requests of keys arrive, but none of their paths begins with the path of `baseUrl`. In this case every request gets 404,
 * and `baseUrl` is probably wrong.
 *
 * @param isOwnPath whether the gateway has a page of its own at a path
 */
export function createBasePathWatch(
  log: Logger,
  isOwnPath: (path: string) => boolean,
  { basePathHintMs, basePathHintPathsMax }: Bounds,
) {
  /** By the first segment of the path. */
  let others = new Map<string, number>();
  let below = 0;
  let timer: NodeJS.Timeout | undefined;

  function hint(basePath: string): void {
    const [most] = [...others].toSorted(([, one], [, other]) => other - one);
    if (below === 0 && most !== undefined) {
      const [segment, requests] = most;
      log.warn(
        `${requests} ${requests === 1 ? 'request' : 'requests'} in the last minute began with /${segment}, none with ${basePath}, the path of \`baseUrl\`: is \`baseUrl\` right?`,
      );
    }
    others = new Map();
    below = 0;
    timer = undefined;
  }

  return {
    ended({ key, path, snapshot }: Exchange): void {
      const { basePath } = snapshot.settings;
      if (key === undefined || path === undefined || basePath === '') return;
      if (path.startsWith(basePath)) {
        below++;
        return;
      }
      const segment = shownSegment.exec(path)?.[1];
      if (segment === undefined || isOwnPath(path)) return;
      if (!others.has(segment) && others.size === basePathHintPathsMax) return;
      others.set(segment, (others.get(segment) ?? 0) + 1);
      timer ??= setTimeout(hint, basePathHintMs, basePath).unref();
    },
    close(): void {
      clearTimeout(timer);
    },
  };
}
