import { loadSettings } from '../../../gateway/config/load-settings.ts';
import { configFolder, mainDocument, redisLine } from '../../support/config-folder.ts';

/** The warnings about a plan with the given limits. */
export function warningsOf(limits: string, files: Readonly<Record<string, string>> = {}): readonly string[] {
  const { file } = configFolder({
    'tollgate.yaml': mainDocument.replace('perMinute: 60, perDay: 1000', limits) + redisLine,
    ...files,
  });
  const loaded = loadSettings({ file, env: {} });
  if (loaded.kind === 'invalid') throw new Error(loaded.problems.map(({ message }) => message).join('\n'));
  return loaded.warnings.map((warning) => warning.slice(warning.search(/(tollgate|keys)\.yaml/)));
}

/** The problems of a configuration with a plan that has the given limits. */
export function problemsOf(limits: string, files: Readonly<Record<string, string>> = {}): readonly string[] {
  const { file } = configFolder({
    'tollgate.yaml': mainDocument.replace('perMinute: 60, perDay: 1000', limits) + redisLine,
    ...files,
  });
  const loaded = loadSettings({ file, env: {} });
  return loaded.kind === 'valid' ? [] : loaded.problems.map(({ message }) => message);
}

export const group = (name: string, members: string) => `groups: { ${name}: { ${members} } }`;
export const ofCreate = (limits: string) => group('reports', `operations: [createPet], ${limits}`);
export const misspelt = group('reports', 'operations: [createPets], perMinute: 5');
