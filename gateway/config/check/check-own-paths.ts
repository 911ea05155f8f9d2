import { settingsParts } from '../../capabilities/lists/configuration.ts';
import { matchesSegment, parseTemplate } from '../../shared/http/path-template.ts';
import { apiDocumentPath, type Operation } from '../../shared/model.ts';
import { basePathOf } from '../build-settings.ts';
import type { Problem } from '../problems/problem.ts';
import type { RawSettings } from '../schema/settings-schema.ts';
import type { YamlSource } from '../source/parse-yaml.ts';

interface OwnPath {
  /** The setting that switches the path on. */
  readonly setting: string;
  readonly path: string;
  /** Whether the gateway also serves all paths below it. */
  readonly below: boolean;
  readonly name: string;
  readonly advice: string;
}

interface PathsToCheck {
  readonly raw: RawSettings;
  readonly main: YamlSource;
  readonly operations: readonly Operation[];
}

/** Own paths must conflict neither with an operation nor with each other. */
export function checkOwnPaths({ raw, main, operations }: PathsToCheck): readonly Problem[] {
  const basePath = basePathOf(raw);
  const own = ownPaths(raw);
  return own.flatMap((one, i) => {
    const taken = operations.find(({ template }) => isMatch(basePath + template, one));
    const other = own
      .slice(i + 1)
      .find((another) => isMatch(one.path, another) || isMatch(another.path, one));
    const whose = taken === undefined ? other?.name : `the operation \`${taken.id}\``;
    if (whose === undefined) return [];
    const message = `${one.name} is also a path of ${whose}; ${one.advice}`;
    return [{ ...main.placeOf([one.setting]), message }];
  });
}

function ownPaths(raw: RawSettings): OwnPath[] {
  const { docsPath } = raw;
  const paths: OwnPath[] = [];
  const write = (setting: OwnPath['setting'], path: string, below: boolean) =>
    paths.push({ setting, path, below, name: `\`${setting}\``, advice: 'write another path' });
  for (const { setting, path, name, advice } of settingsParts.flatMap((part) => part.ownPaths?.(raw) ?? []))
    paths.push({
      ...{ setting, path, below: false },
      name: name ?? `\`${setting}\``,
      advice: advice ?? 'write another path',
    });
  if (docsPath !== undefined) {
    write('docsPath', docsPath, true);
    paths.push({
      setting: 'docsPath',
      path: apiDocumentPath,
      below: false,
      name: `the API document at \`${apiDocumentPath}\``,
      advice: 'it is served with `docsPath`: remove `docsPath`',
    });
  }
  return paths;
}

function isMatch(template: string, { path, below }: Pick<OwnPath, 'path' | 'below'>): boolean {
  const { segments, hasRest } = parseTemplate(template);
  const own = path.split('/');
  if (segments.length > own.length ? !below : segments.length < own.length && !hasRest) return false;
  return segments.slice(0, own.length).every((segment, i) => matchesSegment(segment, own[i] ?? ''));
}
