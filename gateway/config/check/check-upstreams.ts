import type { Settings } from '../../shared/model.ts';
import { isMisspelt } from '../../shared/schema/closest-name.ts';
import { formatDuration } from '../../shared/schema/dates-and-durations.ts';
import { nameOf } from '../../shared/schema/schema-faults.ts';
import { isMapping } from '../../shared/structures/plain-data.ts';
import { defaultBounds } from '../../shared/timeouts-and-sizes.ts';
import { shortFormName } from '../build-settings.ts';
import { configSizes } from '../config-sizes.ts';
import type { Problem } from '../problems/problem.ts';
import { type RawSettings, type RawUpstream, settingNames } from '../schema/settings-schema.ts';
import type { YamlSource } from '../source/parse-yaml.ts';

interface ReadUpstreamNames {
  /** In the order of the configuration; undefined if they cannot be read. */
  readonly names: readonly string[] | undefined;
  readonly problems: readonly Problem[];
}

/**
 * The names that `x-upstream` may have, with rules that the schema cannot express: there is either `upstream` or `upstreams`, and
 * `upstreams` has 1 to `upstreamsMax` entries. The upstreams themselves are not validated here.
 */
export function readUpstreamNames(source: YamlSource): ReadUpstreamNames {
  const document = isMapping(source.value) ? source.value : {};
  const { upstream, upstreams } = document;
  const problem = (path: readonly string[], message: string, part?: 'name') => ({
    names: undefined,
    problems: [{ ...source.placeOf(path, part), message }],
  });

  if (upstream !== undefined && upstreams !== undefined) {
    const message =
      '`upstreams` and `upstream` exclude each other; move `upstream` into `upstreams`, under a name';
    const related = { ...source.placeOf(['upstream'], 'name'), message: '`upstream` is here' };
    return { names: undefined, problems: [{ ...source.placeOf(['upstreams'], 'name'), message, related }] };
  }
  if (upstream !== undefined) return { names: [shortFormName], problems: [] };
  if (upstreams === undefined) {
    const isWritten = (name: string) => isMisspelt(name, Object.keys(document), settingNames);
    // The check of the schema reports the misspelt name.
    if (['upstream', 'upstreams'].some(isWritten)) return { names: undefined, problems: [] };
    return problem(
      ['upstream'],
      '`upstream` is missing; write a mapping with url, or several by name as `upstreams`',
    );
  }
  if (!isMapping(upstreams)) return { names: undefined, problems: [] };
  const names = Object.keys(upstreams);
  const excess = names[configSizes.upstreamsMax];
  if (names.length === 0) return problem(['upstreams'], '`upstreams` must name at least one upstream');
  if (excess !== undefined) {
    return problem(
      ['upstreams', excess],
      `\`upstreams\` may hold at most ${configSizes.upstreamsMax} upstreams`,
      'name',
    );
  }
  return { names, problems: [] };
}

/** Timeouts longer than the total timeout can never take effect. */
export function checkTimeouts(raw: RawSettings, source: YamlSource): readonly Problem[] {
  return upstreamsByPath(raw).flatMap(({ path, upstream }) => {
    const { total, ...parts } = upstream.timeouts;
    const totalMs = total ?? defaultBounds.upstreamTotalTimeoutMs;
    const totalPath = [...path, 'timeouts', 'total'];
    return Object.entries(parts).flatMap(([part, ms]) => {
      if (ms === undefined || ms <= totalMs) return [];
      const at = [...path, 'timeouts', part];
      const unset = total === undefined ? `, which is ${formatDuration(totalMs)} if it is not set` : '';
      const message = `${nameOf(at)} must not be longer than ${nameOf(totalPath)}${unset}`;
      return [{ ...source.placeOf(at), message }];
    });
  });
}

interface PlacedUpstream {
  readonly path: readonly string[];
  readonly upstream: RawUpstream;
}

/** With their paths in the configuration. */
export function upstreamsByPath({ upstream, upstreams }: RawSettings): readonly PlacedUpstream[] {
  if (upstream !== undefined) return [{ path: ['upstream'], upstream }];
  return Object.entries(upstreams ?? {}).map(([name, each]) => ({
    path: ['upstreams', name],
    upstream: each,
  }));
}

/** Names that no operation uses. */
export function unusedUpstreams({ upstreams, operations }: Settings): readonly string[] {
  const used = new Set(operations.map(({ upstream }) => upstream));
  return upstreams.map(({ name }) => name).filter((name) => !used.has(name));
}
