import type { RawKey } from '../../keys/key-schema.ts';
import type { Operation } from '../../shared/model.ts';
import { adviceOnName } from '../../shared/schema/closest-name.ts';
import { nameOf } from '../../shared/schema/schema-faults.ts';
import type { Problem } from '../problems/problem.ts';
import { createProblemList } from '../problems/problem-list.ts';
import type { RawSettings } from '../schema/settings-schema.ts';
import type { YamlSource } from '../source/parse-yaml.ts';

/** The parts of a configuration that `checkScopes` needs. */
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

/** Checks that each operation named by a plan, key or receiver is in the API document. */
export function checkScopes({ raw, main, keyList, operations }: Scoped): readonly Problem[] {
  const problems = createProblemList();
  const known = new Set(operations.map(({ id }) => id));
  const hasDocument = raw.api !== undefined;

  for (const [name, plan] of Object.entries(raw.plans)) {
    check(plan.operations, main, ['plans', name, 'operations']);
  }
  raw.notify.forEach(({ operations }, index) => {
    check(operations, main, ['notify', index, 'operations']);
  });
  keyList.keys.forEach((key, index) => {
    check(key.operations, keyList.source, [...keyList.path, index, 'operations']);
  });
  return problems.problems;

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
