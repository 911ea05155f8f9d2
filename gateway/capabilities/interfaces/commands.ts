import type { Command } from 'commander';
import type * as z from 'zod';
import type { KeyDetail } from '../../admin/wires/keys/key.ts';
import type { planShown, plansPage } from '../../admin/wires/plans/plans.ts';
import type { CommandParents } from '../../cli/command.ts';
import type { Screen } from '../../cli/output/screen.ts';
import type { Column } from '../../cli/output/table.ts';
import type { LimitVerdict } from '../../cli/what-if/diff-verdicts.ts';

/**
 * The declarations of the commands of a capability. Each member is optional. The action of a command imports the file that does the work.
 */
export interface CommandPart {
  add?(parents: CommandParents): void;
  /** Adds subcommands of `plans`. */
  addToPlans?(plans: Command): void;
}

/** What a capability adds to the list of plans: a column, and lines below the list. */
export interface PlanRows {
  readonly column: Column<ListedPlan>;
  lines(plan: ListedPlan, screen: Screen): readonly string[];
}

type ListedPlan = z.output<typeof plansPage>['plans'][number];

/** What a capability adds to `keys show`: names and values. */
export type KeyFacts = (key: KeyDetail) => readonly (readonly [name: string, value: string])[];

/** What a capability says about an edit of plans, in `check` and `diff`. */
export type EditNotes = (edit: {
  readonly before: readonly z.output<typeof planShown>[];
  readonly after: readonly z.output<typeof planShown>[];
  readonly nowMs: number;
  /** What the simulation of the edit found; undefined if the edit was not simulated. */
  readonly verdicts?: readonly LimitVerdict[] | undefined;
}) => {
  /** The members of the JSON document of `diff`. */
  readonly members: Readonly<Record<string, unknown>>;
  readonly notes: readonly EditNote[];
};

export interface EditNote {
  readonly plan: string;
  /** A sentence without its full stop. */
  readonly warning: string;
  /** A sentence for `diff`, and the line of the configuration that it proposes. */
  readonly advice: string;
  readonly proposal?: string | undefined;
  /** What `diff` proposes, for the warning of `check`: "a guard". */
  readonly diffProposes: string;
}
