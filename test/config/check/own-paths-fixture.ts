import { loadSettings } from '../../../gateway/config/load-settings.ts';
import { formatProblems } from '../../../gateway/config/problems/format-problems.ts';
import { configFolder, mainDocument } from '../../support/config-folder.ts';

/**
 * Loads a small configuration with the given extra lines. The base URL of the configuration has the path `basePath`.
 */
export function load(lines: string, { basePath = '/v1', paths = '' } = {}) {
  const main = mainDocument.replace('example.com/v1', `example.com${basePath}`) + lines;
  const folder = configFolder({
    'tollgate.yaml': main,
    'openapi.yaml': `paths:\n  /pets: { get: { operationId: listPets } }\n${paths}`,
  });
  const loaded = loadSettings({ file: folder.file, env: {} });
  return loaded.kind === 'valid'
    ? { settings: loaded.settings, report: '' }
    : { settings: undefined, report: formatProblems(loaded.problems).replaceAll(folder.pathOf(''), '') };
}
