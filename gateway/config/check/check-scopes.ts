import { planMembers, settingsParts } from '../../capabilities/lists/configuration.ts';
import type { RawKey } from '../../keys/key-schema.ts';
import type { GroupsByName } from '../../keys/limits/limit-fields.ts';
import type { Operation } from '../../shared/model.ts';
import { adviceOnName } from '../../shared/schema/closest-name.ts';
import { nameOf } from '../../shared/schema/schema-faults.ts';
import type { Problem } from '../problems/problem.ts';
import { createProblemList } from '../problems/problem-list.ts';
import type { RawSettings } from '../schema/settings-schema.ts';
import type { YamlSource } from '../source/parse-yaml.ts';

interface Scoped {
  readonly raw: RawSettings;
  readonly main: YamlSource;
  readonly keyList: {
    readonly source: YamlSource;
    readonly path: readonly PropertyKey[];
    readonly keys: readonly RawKey[];
  };
  readonly operations: readonly Operation[];
}

/** The API document must have each operation that a plan, key or setting names. */
export function checkScopes({ raw, main, keyList, operations }: Scoped): readonly Problem[] {
  const problems = createProblemList();
  const known = new Set(operations.map(({ id }) => id));
  const hasDocument = raw.api !== undefined;

  for (const [name, plan] of Object.entries(raw.plans)) {
    const path = ['plans', name];
    check(plan.operations, main, [...path, 'operations']);
    checkGroups(plan.groups, main, path);
    plan.changes?.forEach(({ groups }, index) => {
      checkGroups(groups, main, [...path, 'changes', index]);
    });
    checkGroups(plan.trial?.groups, main, [...path, 'trial']);
    for (const { path: within, groups } of planMembers.flatMap((member) => member.groupsIn?.(plan) ?? []))
      checkGroups(groups, main, [...path, ...within]);
  }
  for (const { path, operations } of settingsParts.flatMap((part) => part.operationsIn?.(raw) ?? []))
    check(operations, main, path);
  keyList.keys.forEach((key, index) => {
    const path = [...keyList.path, index];
    check(key.operations, keyList.source, [...path, 'operations']);
    checkGroups(key.groups, keyList.source, path);
  });
  return problems.problems;

  function checkGroups(groups: GroupsByName = {}, source: YamlSource, path: readonly PropertyKey[]): void {
    for (const [name, { operations }] of Object.entries(groups))
      check(operations, source, [...path, 'groups', name, 'operations']);
  }

  function check(ids: readonly string[] | undefined, source: YamlSource, path: readonly PropertyKey[]): void {
    ids?.forEach((id, index) => {
      if (known.has(id)) return;
      const at = [...path, index];
      problems.add(() => ({
        ...source.placeOf(at),
        message: hasDocument
          ? `${nameOf(at)} names no operation of the API document; ${adviceOnName(id, known, 'operations')}`
          : `${nameOf(at)} needs \`api\`, the API document with the operations; without it the only operation is \`any\``,
      }));
    });
  }
}
