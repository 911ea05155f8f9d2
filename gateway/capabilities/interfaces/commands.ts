import type { Command } from 'commander';
import type * as z from 'zod';
import type { KeyDetail } from '../../admin/wires/keys/key.ts';
import type { planShown, plansPage } from '../../admin/wires/plans/plans.ts';
import type { AdminClient } from '../../cli/admin/admin-client.ts';
import type { CommandParents } from '../../cli/command.ts';
import type { Screen } from '../../cli/output/screen.ts';
import type { Column } from '../../cli/output/table.ts';
import type { Shown, ShownFile } from '../../cli/what-if/settings-shown.ts';

/**
 * The declarations of the commands of a capability. Each member is optional. The action of a command imports the file that does the work.
 */
export interface CommandPart {
  add?(parents: CommandParents): void;
  /** Adds subcommands of `keys`. */
  addToKeys?(keys: Command): void;
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

/** What a capability says about an edit of the configuration, in `check` and `diff`. */
export type EditNotes = (edit: ConfigurationEdit) => Promise<{
  /** The members of the JSON document of `diff`. */
  readonly members: Readonly<Record<string, unknown>>;
  readonly notes: readonly EditNote[];
}>;

export interface ConfigurationEdit {
  readonly plans: { readonly before: readonly PlanShown[]; readonly after: readonly PlanShown[] };
  /** Whether the edited configuration has Redis, which some members of plans need. */
  readonly hasRedis: boolean;
  readonly nowMs: number;
  /** The whole configurations, and the gateway that may replay the edit. `check` replays nothing, nor does a comparison of two files. */
  readonly replayed?:
    | { readonly before: Shown; readonly after: ShownFile; readonly client: AdminClient }
    | undefined;
}

type PlanShown = z.output<typeof planShown>;

/** A note of `diff` below a plan or key. */
export interface EditNote {
  readonly noun: 'plan' | 'key';
  readonly id: string;
  /** The changed member of which the note is; absent for a note on the whole edit of the plan or key. */
  readonly member?: string | undefined;
  /** Lines of at most `screen.columns` columns, without their indentation of six columns. */
  lines(screen: Screen): readonly string[];
  /** A warning. `diff` also prints it if it does not list the plan, and `check` prints the text. @param file the edited configuration */
  readonly warning?: ((file: string) => string) | undefined;
}
