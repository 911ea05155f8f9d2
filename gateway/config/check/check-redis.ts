import type { RedisNeed } from '../../capabilities/interfaces/configuration.ts';
import { planMembers, settingsParts } from '../../capabilities/lists/configuration.ts';
import { parseRedisUrl } from '../../shared/addresses/redis-url.ts';
import { nameOf } from '../../shared/schema/schema-faults.ts';
import type { Problem } from '../problems/problem.ts';
import { createProblemList } from '../problems/problem-list.ts';
import { hasDirectory, hasRedis, type RawSettings } from '../schema/settings-schema.ts';
import type { YamlSource } from '../source/parse-yaml.ts';

type RawRedis = NonNullable<RawSettings['redis']>;

const forms = ['url', 'cluster', 'sentinel'] as const;

/**
 * Checks rules about `redis` that the schema cannot express. The setting `redis` must have one of three forms, and its fields
 * must not contradict each other. Certificates are allowed only with TLS. Without Redis, some settings are refused.
 */
export function checkRedis(raw: RawSettings, source: YamlSource): readonly Problem[] {
  const { redis } = raw;
  if (redis === undefined || !hasRedis(raw)) return checkWithoutRedis(raw, source);
  const [form, other] = forms.filter((name) => redis[name] !== undefined);
  const problem = (path: readonly PropertyKey[], message: string) => ({
    ...source.placeOf(['redis', ...path]),
    message,
  });
  if (form === undefined) return [problem([], '`redis` needs one of `url`, `cluster` and `sentinel`')];
  if (other !== undefined) {
    const message = `\`redis.${other}\` and \`redis.${form}\` exclude each other; choose one server, a Cluster, or Sentinel`;
    const related = { ...source.placeOf(['redis', form], 'name'), message: `\`redis.${form}\` is here` };
    return [{ ...source.placeOf(['redis', other], 'name'), message, related }];
  }
  const found: Problem[] = [];
  const { url, cluster, sentinel, username, passwordFile } = redis;
  const ofUrl = parseRedisUrl(url ?? '').server;
  if (ofUrl?.password && passwordFile !== undefined) {
    found.push(problem(['passwordFile'], '`redis.passwordFile` contradicts the password in `redis.url`'));
  }
  if (ofUrl?.username && username !== undefined) {
    found.push(problem(['username'], '`redis.username` contradicts the user in `redis.url`'));
  }
  const hasPassword = ofUrl?.password || passwordFile !== undefined;
  if (username !== undefined && !hasPassword) {
    found.push(problem(['username'], '`redis.username` needs `passwordFile` beside it'));
  }
  if (sentinel?.username !== undefined && sentinel.passwordFile === undefined) {
    found.push(problem(['sentinel', 'username'], '`username` needs `passwordFile` beside it'));
  }
  if (cluster !== undefined && new Set(cluster.map(isTlsUrl)).size > 1) {
    found.push(
      problem(
        ['cluster'],
        '`redis.cluster` mixes redis:// and rediss://; all of its servers have TLS, or none',
      ),
    );
  }
  const tlsField = (['ca', 'cert', 'key'] as const).find((name) => redis[name] !== undefined);
  if (tlsField !== undefined && !isTls(redis)) {
    const what = sentinel === undefined ? `\`${form}\` with rediss://` : '`sentinel.tls: true`';
    found.push(problem([tlsField], `\`redis.${tlsField}\` is for TLS and needs ${what}`));
  }
  return found;
}

/**
 * Refuses the settings that need Redis, because their data must outlive the process or must be the same in each process. Counts and the usage
 * record also have a store in memory. A restart then loses at most one window of the counts and one day of the record.
 */
function checkWithoutRedis(raw: RawSettings, source: YamlSource): readonly Problem[] {
  const { redis, workers } = raw;
  const list = createProblemList();
  const related = redis && { ...source.placeOf(['redis', 'url']), message: '`redis.url` is empty here' };
  const add = (path: readonly PropertyKey[], message: string) =>
    list.add(() => ({ ...source.placeOf(path, 'name'), message, ...(related && { related }) }));
  if (workers !== 1)
    add(
      ['workers'],
      '`workers` must be 1 without `redis`: in memory each worker would count limits on its own',
    );
  for (const { path, lost, instead } of needsOf(raw)) {
    add(path, `${nameOf(path)} needs \`redis\`: without Redis, ${lost}; add \`redis\`, or ${instead}`);
  }
  return list.problems;
}

function* needsOf(raw: RawSettings): Iterable<RedisNeed> {
  if (hasDirectory(raw)) {
    const lost = 'a restart would lose every key of the directory';
    yield { path: ['keys', 'directory'], lost, instead: 'write the keys into a file' };
  }
  for (const part of settingsParts) yield* part.needsRedis?.(raw) ?? [];
  for (const [name, plan] of Object.entries(raw.plans)) {
    for (const member of planMembers) {
      for (const need of member.needsRedis?.(plan) ?? [])
        yield { ...need, path: ['plans', name, ...need.path] };
    }
  }
}

/** Whether connections to Redis use TLS. */
export function isTls({ url, cluster, sentinel }: RawRedis): boolean {
  return sentinel?.tls ?? isTlsUrl(cluster?.[0] ?? url ?? '');
}

function isTlsUrl(url: string): boolean {
  return url.startsWith('rediss:');
}
