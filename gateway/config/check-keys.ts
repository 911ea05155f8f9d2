import { closestName, listNames } from './problems/closest-name.ts';
import type { Problem } from './problems/problem.ts';
import { createProblemList } from './problems/problem-list.ts';
import { anyLimitField } from './schema/limit-fields.ts';
import { nameOf } from './schema/shape-problems.ts';
import type { YamlSource } from './source/parse-yaml.ts';
import { isMapping, type Mapping } from './source/yaml-to-plain.ts';

/** A list of keys as read from a file, and its path there: the root of the keys file, or `keys` in the main file. */
export interface KeyList {
  readonly source: YamlSource;
  readonly path: readonly PropertyKey[];
  readonly entries: readonly unknown[];
}

/**
 * Checks what the schema of one key cannot: ids and digests are unique, the plan exists, and a key has limits of its own
 * exactly when its plan is custom. Entries need not have passed the schema, so that both kinds of problems are reported
 * together.
 */
export function checkKeys({ source, path, entries }: KeyList, plans: unknown): readonly Problem[] {
  const problems = createProblemList();
  const planNames = isMapping(plans) ? Object.keys(plans) : [];
  const ids = new Map<string, Path>();
  const digests = new Map<string, Path>();

  entries.forEach((entry, index) => {
    if (!isMapping(entry) || problems.isFull()) return;
    const keyPath = [...path, index];
    if (typeof entry.id === 'string') claim(ids, entry.id, [...keyPath, 'id'], 'this id');
    listOf(entry.secrets).forEach((secret, position) => {
      if (!isMapping(secret) || typeof secret.sha256 !== 'string') return;
      claim(digests, secret.sha256.toLowerCase(), [...keyPath, 'secrets', position, 'sha256'], 'this digest');
    });
    if (isMapping(plans)) checkPlan(entry, keyPath, plans);
  });
  return problems.problems;

  function claim(taken: Map<string, Path>, value: string, at: Path, what: string): void {
    const first = taken.get(value);
    if (first === undefined) {
      taken.set(value, at);
      return;
    }
    problems.add(() => ({
      ...source.placeOf(at),
      message: `${nameOf(at)}: ${what} is already taken by ${nameOf(first)}; each must be unique`,
      related: { ...source.placeOf(first), message: 'it is here' },
    }));
  }

  function checkPlan(entry: Mapping, keyPath: Path, definedPlans: Mapping): void {
    if (typeof entry.plan !== 'string') return;
    const at = [...keyPath, 'plan'];
    if (!Object.hasOwn(definedPlans, entry.plan)) {
      const { plan } = entry;
      problems.add(() => ({
        ...source.placeOf(at),
        message: `${nameOf(at)} names no plan; ${adviceOnPlan(plan)}`,
      }));
      return;
    }
    const isCustom = definedPlans[entry.plan] === 'custom';
    if (isCustom && entry.limits === undefined) {
      problems.add(() => ({
        ...source.placeOf(at),
        message: `${nameOf(keyPath)} is on a custom plan; write its \`limits: { … }\` with ${anyLimitField}`,
      }));
    }
    if (!isCustom && entry.limits !== undefined) {
      problems.add(() => ({
        ...source.placeOf([...keyPath, 'limits'], 'name'),
        message: `${nameOf([...keyPath, 'limits'])} is for custom plans only; remove it or choose a custom plan`,
      }));
    }
  }

  function adviceOnPlan(plan: string): string {
    const closest = closestName(plan, planNames);
    return closest === undefined ? `plans are: ${listNames(planNames)}` : `did you mean \`${closest}\`?`;
  }
}

type Path = readonly PropertyKey[];

function listOf(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : [];
}
