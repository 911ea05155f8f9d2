// biome-ignore-all format: each entry has a line of its own, which goes with its capability
import { guardCommands } from '../guard/commands.ts';
import type { CommandPart, EditNotes, PlanRows } from '../interfaces/commands.ts';

/** The commands of capabilities. */
export const commandParts: readonly CommandPart[] = [
  guardCommands,
];

/** What capabilities add to the list of plans. */
export const planRows: readonly (() => Promise<PlanRows>)[] = [
  async () => (await import('../guard/plan-rows.ts')).guardRows,
];

/** What capabilities say about an edit of plans. */
export const editNotes: readonly (() => Promise<EditNotes>)[] = [
  async () => (await import('../guard/what-if/edit-notes.ts')).guardNotes,
];
