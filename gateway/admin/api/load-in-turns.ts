import { setImmediate as nextTurn } from 'node:timers/promises';

type Load<Module> = () => Promise<Module>;

/**
 * Loads a module whose code is rarely needed. Reading and compiling the code occupies the event loop. The large parts of the module are
 * therefore loaded first, each in its own turn of the event loop, so that API requests wait for one part and not for the whole module.
 *
 * @param parts imports of the module, in an order in which each part needs only earlier parts
 */
export async function loadInTurns<Module>(
  parts: readonly Load<unknown>[],
  module: Load<Module>,
): Promise<Module> {
  for (const load of parts) {
    await load();
    await nextTurn();
  }
  return module();
}

/** The library of the schemas, and the schema of the settings. */
export const schemaParts: readonly Load<unknown>[] = [
  () => import('zod/v4/core'),
  () => import('zod'),
  () => import('../../config/schema/settings-schema.ts'),
];
