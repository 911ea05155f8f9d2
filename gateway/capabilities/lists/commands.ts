// biome-ignore-all format: each entry has a line of its own, which goes with its capability

import { guardCommands } from '../guard/commands.ts';
import { holderCommands } from '../holder/commands.ts';
import type { CommandPart, EditNotes, KeyFacts, PlanRows } from '../interfaces/commands.ts';
import { leaksCommands } from '../leaks/commands.ts';
import { makegoodCommands } from '../makegood/commands.ts';
import { simulateCommands } from '../simulate/commands.ts';
import { webhooksCommands } from '../webhooks/commands.ts';

export const commandParts: readonly CommandPart[] = [
  guardCommands,
  holderCommands,
  leaksCommands,
  makegoodCommands,
  webhooksCommands,
  simulateCommands,
];

/** What capabilities add to the list of plans. */
export const planRows: readonly (() => Promise<PlanRows>)[] = [
  async () => (await import('../guard/commands/plan-rows.ts')).guardRows,
];

/** What capabilities add to `keys show`. */
export const keyFacts: readonly (() => Promise<KeyFacts>)[] = [
  async () => (await import('../makegood/commands/credit-facts.ts')).creditFacts,
  async () => (await import('../holder/commands/link-facts.ts')).linkFacts,
];

/** What capabilities say about an edit of plans. */
export const editNotes: readonly (() => Promise<EditNotes>)[] = [
  async () => (await import('../simulate/commands/edit-notes.ts')).simulatedNotes,
  async () => (await import('../guard/what-if/edit-notes.ts')).guardNotes,
];
