import type { Problem } from './problems/problem.ts';
import { createProblemList } from './problems/problem-list.ts';
import { createUniqueValues } from './problems/unique-values.ts';
import type { RawSettings } from './schema/settings-schema.ts';
import type { YamlSource } from './source/parse-yaml.ts';

/** No two tokens of the admin API have the same name, or changes could not be told apart, nor the same digest. */
export function checkAdmin({ admin }: RawSettings, source: YamlSource): readonly Problem[] {
  const problems = createProblemList();
  const names = createUniqueValues({ what: 'this name', source, problems });
  const digests = createUniqueValues({ what: 'this digest', source, problems });
  admin.tokens.forEach(({ name, sha256 }, index) => {
    const path = ['admin', 'tokens', index];
    names.claim(name, [...path, 'name']);
    digests.claim(sha256, [...path, 'sha256']);
  });
  return problems.problems;
}
