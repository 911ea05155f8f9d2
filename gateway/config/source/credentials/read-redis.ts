import type { RedisSettings } from '../../../shared/model.ts';
import { isTls } from '../../check/check-redis.ts';
import { wholeFile } from '../../problems/problem.ts';
import type { RawSettings } from '../../schema/settings-schema.ts';
import type { LoadContext } from '../source-reader.ts';
import { readClientTls } from './read-client-tls.ts';

/** With the files that the settings name. Undefined for the in-memory store. */
export function readRedis(
  { redis, environment }: RawSettings,
  context: LoadContext,
): RedisSettings | undefined {
  if (redis === undefined || redis.url === '') return undefined;
  const { main, reader, fileOf, problems } = context;
  const { cluster, sentinel, ca, cert, key } = redis;

  /** The final line break, which editors and `echo` add, is not part of the password. */
  const readPassword = (named: string | undefined, path: readonly string[]): string | undefined => {
    if (named === undefined) return undefined;
    const file = fileOf(named);
    const text = reader.readText({ file, main, path: ['redis', ...path] });
    const password = text?.replace(/\r?\n$/, '');
    if (password === '') problems.push({ ...wholeFile(file), message: 'this file has no password' });
    return password;
  };
  const password = readPassword(redis.passwordFile, ['passwordFile']);
  const sentinelPassword = readPassword(sentinel?.passwordFile, ['sentinel', 'passwordFile']);
  const tls = readClientTls({ ca, cert, key }, ['redis'], context);

  return {
    url: redis.url,
    cluster,
    sentinel: sentinel && {
      name: sentinel.name,
      hosts: sentinel.hosts,
      username: sentinel.username,
      password: sentinelPassword,
    },
    username: redis.username,
    password,
    tls: isTls(redis) ? tls : undefined,
    prefix: redis.prefix ?? `tollgate-${environment}`,
    onFailure: redis.onFailure,
  };
}
