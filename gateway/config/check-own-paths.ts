import type { Operation } from '../model.ts';
import { basePathOf } from './build-settings.ts';
import type { Problem } from './problems/problem.ts';
import type { RawSettings } from './schema/settings-schema.ts';
import type { YamlSource } from './source/parse-yaml.ts';

/** A path that the gateway serves itself would take the requests of an operation that has it. */
export function checkOwnPaths({
  raw,
  main,
  operations,
}: {
  readonly raw: RawSettings;
  readonly main: YamlSource;
  readonly operations: readonly Operation[];
}): readonly Problem[] {
  const { limitsPath } = raw;
  if (limitsPath === undefined) return [];
  const basePath = basePathOf(raw);
  const taken = operations.find(({ template }) => isMatch(basePath + template, limitsPath));
  if (taken === undefined) return [];
  const message = `\`limitsPath\` is a path of the operation \`${taken.id}\`; write another`;
  return [{ ...main.placeOf(['limitsPath']), message }];
}

/** Whether requests of the path would match the template: a parameter stands for any one segment. */
function isMatch(template: string, path: string): boolean {
  const wanted = template.split('/');
  const segments = path.split('/');
  return (
    wanted.length === segments.length &&
    wanted.every((part, i) => part.startsWith('{') || part === segments[i])
  );
}
