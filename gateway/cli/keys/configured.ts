import type { WrittenKey } from '../../config/load-settings.ts';
import { inForceForDirectory } from '../../keys/key-table.ts';
import { compileKey, planNameAt } from '../../keys/plans/compile-key.ts';
import { printable } from '../../shared/terminal/printable.ts';
import { policyName } from '../../shared/words/limit-names.js';
import type { Asking } from '../command.ts';
import type { Screen } from '../output/screen.ts';
import { show } from '../output/show.ts';
import { type Column, table } from '../output/table.ts';
import { configurationOf, type LoadedKeys, loadKeys } from './file/edit-keys.ts';
import { definitionOf } from './file-keys.ts';

export function listConfigured(options: Asking): void {
  const loaded = loadKeys(configurationOf(options.config));
  const file = loaded.settings.keysFile?.path;
  const keys = loaded.written.map(({ key, line }) => ({ ...definitionOf(key), file, line }));
  show(options, { json: { keys }, body: loaded }, configuredTable);
}

/** Shows the number of valid secrets, and no digests. */
function configuredTable(
  { settings, written }: Pick<LoadedKeys, 'settings' | 'written'>,
  screen: Screen,
  nowMs: number,
): string[] {
  const inForce = inForceForDirectory(settings, nowMs);
  const limitsOf = (key: WrittenKey['key']) => compileKey(key, inForce)?.limits ?? [];
  const isValid = ({ expires = Number.POSITIVE_INFINITY }) => expires > nowMs;
  const columns: readonly Column<WrittenKey>[] = [
    { title: 'ID', cell: ({ key }) => key.id, cutsTo: 12 },
    { title: 'PLAN', cell: ({ key }) => planNameAt(key, nowMs), cutsTo: 10 },
    {
      title: 'LIMITS',
      cell: ({ key }) =>
        limitsOf(key)
          .map(({ window, group, max }) => `${max}/${policyName(window, group)}`)
          .join(' '),
      cutsTo: 12,
    },
    {
      title: 'VALID SECRETS',
      cell: ({ key }) => (key.disabled ? 'disabled' : String(key.secrets.filter(isValid).length)),
    },
    { title: 'NAME', cell: ({ key }) => printable(key.name ?? ''), cutsTo: 12 },
  ];
  return table(columns, written, screen);
}
