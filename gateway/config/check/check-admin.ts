import type { Problem } from '../problems/problem.ts';
import { createProblemList, createUniqueValues } from '../problems/problem-list.ts';
import type { RawSettings } from '../schema/settings-schema.ts';
import type { YamlSource } from '../source/parse-yaml.ts';

/** The admin listener needs its own address. Names of tokens are unique, because the record of changes names the token. */
export function checkAdmin({ listen, admin }: RawSettings, source: YamlSource): readonly Problem[] {
  const problems = createProblemList();
  if (excludeEachOther(listen, admin)) {
    const message = `\`admin.port\` (${admin.port}) is taken by \`listen.port\`: the admin listener needs its own port`;
    problems.add(() => ({ ...source.placeOf(['admin', 'port']), message }));
  }
  const names = createUniqueValues({ what: 'this name', source, problems });
  const digests = createUniqueValues({ what: 'this digest', source, problems });
  admin.tokens.forEach(({ name, sha256 }, index) => {
    const path = ['admin', 'tokens', index];
    names.claim(name, [...path, 'name']);
    digests.claim(sha256, [...path, 'sha256']);
  });
  return problems.problems;
}

type Address = Pick<RawSettings['listen'], 'host' | 'port'>;

/** Port 0 never conflicts, because the system then chooses a free port. */
function excludeEachOther(one: Address, other: Address): boolean {
  const isShared = one.host === other.host || anyAddress.has(one.host) || anyAddress.has(other.host);
  return one.port !== 0 && one.port === other.port && isShared;
}

const anyAddress = new Set(['0.0.0.0', '::']);
