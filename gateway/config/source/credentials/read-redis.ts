import type { RedisSettings } from '../../../shared/model.ts';
import { isTls } from '../../check/check-redis.ts';
import { wholeFile } from '../../problems/problem.ts';
import type { RawSettings } from '../../schema/settings-schema.ts';
import type { LoadContext } from '../source-reader.ts';
import { readClientTls } from './read-client-tls.ts';

/** Reads the Redis settings and the files that they name. Returns undefined for the in-memory store. */
export function readRedis(
  { redis, environment }: RawSettings,
  context: LoadContext,
): RedisSettings | undefined {
  if (redis === undefined || redis.url === '') return undefined;
  const { main, reader, fileOf, problems } = context;
  const { cluster, sentinel, ca, cert, key } = redis;

  /** Reads a password file. The final line break, which editors and `echo` add, is not part of the password. */
  const readPassword = (named: string | undefined, path: readonly string[]): string | undefined => {
    if (named === undefined) return undefined;
    const file = fileOf(named);
    const text = reader.readText({ file, mentionedAt: main.placeOf(['redis', ...path]) });
    const password = text?.replace(/\r?\n$/, '');
    if (password === '') problems.push({ ...wholeFile(file), message: 'this file has no password' });
    return password;
  };
  const password = readPassword(redis.passwordFile, ['passwordFile']);
  const sentinelPassword = readPassword(sentinel?.passwordFile, ['sentinel', 'passwordFile']);
  const tls = readClientTls({ ca, cert, key }, ['redis'], context);
  const { url, username = redis.username } = password === undefined ? redis : splitUser(redis.url);

  return {
    url,
    cluster,
    sentinel: sentinel && {
      name: sentinel.name,
      hosts: sentinel.hosts,
      username: sentinel.username,
      password: sentinelPassword,
    },
    username,
    password,
    tls: isTls(redis) ? tls : undefined,
    prefix: redis.prefix ?? `tollgate-${environment}`,
    onFailure: redis.onFailure,
  };
}

/**
 * Separates the user name from a URL whose password is in a file. A URL with a user name but no password would mean an empty
 * password.
 */
function splitUser(text: string | undefined): { readonly url?: string; readonly username?: string } {
  const url = URL.parse(text ?? '');
  if (url === null) return {};
  const username = decodeURIComponent(url.username);
  url.username = '';
  return { url: url.href, ...(username !== '' && { username }) };
}
