import { anyLimitField } from '../../keys/limits/limit-fields.ts';
import { isStatedCustom, planFault } from '../../keys/plans/plans.ts';
import { adviceOnName } from '../../shared/schema/closest-name.ts';
import { nameOf } from '../../shared/schema/schema-faults.ts';
import { isMapping, type Mapping } from '../../shared/structures/plain-data.ts';
import type { Problem } from '../problems/problem.ts';
import { createProblemList, createUniqueValues } from '../problems/problem-list.ts';
import type { YamlSource } from '../source/parse-yaml.ts';

/** The root of the keys file, or the field `keys` of the main file. */
export interface KeyList {
  readonly source: YamlSource;
  readonly path: readonly PropertyKey[];
  readonly entries: readonly unknown[];
}

/**
 * Rules that the schema of a single key cannot express: ids and digests are unique, and exactly the keys on custom plans have their own
 * limits. Entries that violate the schema are checked too.
 */
export function checkKeys({ source, path, entries }: KeyList, plans: unknown): readonly Problem[] {
  const problems = createProblemList();
  const planNames = isMapping(plans) ? Object.keys(plans) : [];
  const ids = createUniqueValues({ what: 'this id', source, problems });
  const digests = createUniqueValues({ what: 'this digest', source, problems });

  entries.forEach((entry, index) => {
    if (!isMapping(entry) || problems.isFull()) return;
    const keyPath = [...path, index];
    if (typeof entry.id === 'string') ids.claim(entry.id, [...keyPath, 'id']);
    listOf(entry.secrets).forEach((secret, position) => {
      if (!isMapping(secret) || typeof secret.sha256 !== 'string') return;
      digests.claim(secret.sha256.toLowerCase(), [...keyPath, 'secrets', position, 'sha256']);
    });
    if (!isMapping(plans)) return;
    checkPlan(entry, keyPath, plans);
    listOf(entry.changes).forEach((change, position) => {
      if (isMapping(change)) checkPlan(change, [...keyPath, 'changes', position], plans);
    });
  });
  return problems.problems;

  function checkPlan({ plan, limits }: Mapping, keyPath: Path, definedPlans: Mapping): void {
    if (typeof plan !== 'string') return;
    const isCustom = Object.hasOwn(definedPlans, plan) ? isStatedCustom(definedPlans[plan]) : undefined;
    const fault = planFault(limits, isCustom);
    if (fault === undefined) return;
    const isOfLimits = fault === 'limits_of_plan';
    const at = [...keyPath, isOfLimits ? 'limits' : 'plan'];
    problems.add(() => ({
      ...source.placeOf(at, isOfLimits ? 'name' : 'value'),
      message: {
        no_plan: `${nameOf(at)} names no plan; ${adviceOnName(plan, planNames, 'plans')}`,
        limits_missing: `${nameOf(keyPath)} is on a custom plan; write its \`limits: { … }\` with ${anyLimitField}`,
        limits_of_plan: `${nameOf(at)} is for custom plans only; remove it or choose a custom plan`,
      }[fault],
    }));
  }
}

type Path = readonly PropertyKey[];

function listOf(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : [];
}
