import { basename } from 'node:path';
import { closestName } from '../../shared/schema/closest-name.ts';
import { isMapping } from '../../shared/structures/plain-data.ts';
import { configSizes } from '../config-sizes.ts';
import { settingNames } from '../schema/settings-schema.ts';
import { type Problem, wholeFile } from './problem.ts';

/**
 * A single problem for a file that is not a configuration at all, without a quote from the file. Undefined if a name in the file is a
 * setting or resembles one, because later checks report the problems of such a file.
 */
export function otherDocument(file: string, value: unknown): Problem | undefined {
  const names = isMapping(value) ? Object.keys(value) : [];
  const isSetting = (name: string) => closestName(name, settingNames) !== undefined;
  if (names.some((name) => settingNames.includes(name))) return undefined;
  if (names.slice(0, configSizes.problemsMax).some(isSetting)) return undefined;
  const message = `${whatItIs(file, value, new Set(names))}. A configuration is a mapping with \`environment\`, \`baseUrl\`, \`upstream\`, \`plans\`, \`keys\` and \`api\``;
  return { ...wholeFile(file), message };
}

function whatItIs(file: string, value: unknown, names: ReadonlySet<string>): string {
  const name = basename(file);
  if (value === null || value === undefined) return 'this file is empty, or has only comments';
  if (Array.isArray(value)) {
    const isKeys = value.some((entry) => isMapping(entry) && 'secrets' in entry);
    return isKeys
      ? `this is a keys file. Give the configuration that names it: \`keys: ./${name}\``
      : 'this is a list';
  }
  if (!isMapping(value)) {
    const isMarkup = typeof value === 'string' && value.startsWith('<');
    return isMarkup ? 'this is HTML or XML' : 'this is text and no mapping';
  }
  if (names.has('openapi') || names.has('swagger'))
    return `this is an OpenAPI document. Give the configuration that names it: \`api: ./${name}\``;
  if (names.has('services')) return 'this is a Compose file';
  if (names.has('apiVersion') && names.has('kind')) return 'this is a Kubernetes object';
  return 'none of its fields is a setting';
}
