import type { GroupsByName, LimitsByField } from '../../keys/limits/limit-fields.ts';
import type {
  Deprecation,
  DeprecationMembers,
  Plan,
  PlanAdvice,
  PlanMembers,
  PlanStates,
  Proposals,
  SettingsMembers,
} from '../../shared/model.ts';

/**
 * A member of a plan that belongs to a capability. The schema of the member is in `planShape`, and the schema of the members that responses
 * show is in `planShownShape` (`lists/configuration.ts`). A capability adds the types of its members to the empty interfaces below, to
 * `PlanMembers` and to `PlanStates` (`shared/model.ts`) with `declare module`.
 */
export interface PlanMember {
  /** Makes the member of the compiled plan. */
  compile(stated: StatedPlanMembers): PlanMembers;
  /** The groups that the member states, each with the path of their parent in the plan. `check` looks up their operations. */
  groupsIn?(
    stated: StatedPlanMembers,
  ): readonly { readonly path: readonly string[]; readonly groups: GroupsByName | undefined }[];
  /** A warning of `check`: what is wrong about the value at a path in the plan. */
  warning?(
    plan: Plan,
    nowMs: number,
  ): { readonly path: readonly string[]; readonly about: string } | undefined;
  /** Returns the plan in force. @param plan the plan with the limits that apply by the configuration */
  inForce?(plan: Plan, states: PlanStates): Plan;
  /** The members of the plan in responses. */
  shown(members: PlanMembers): PlanShownMembers;
  /** Returns a plan of a response as the configuration states it. `limits` are its limits, if other limits are in force. */
  asConfigured?(shown: Shown): { readonly rest: Shown; readonly limits?: LimitsByField };
  /** Describes a value in a response by the name of its member, for the list of edits. */
  readonly texts: Readonly<Record<string, (shown: unknown) => string>>;
}

/** Settings that belong to a capability. Their schema is in `settingsShapes`, and their types are in `SettingsMembers`. */
export interface SettingsPart {
  /** The paths of the public listener that the settings switch on. No operation may have them. */
  ownPaths?(settings: SettingsMembers): readonly OwnPath[];
  /** What is wrong about the settings together, with the path of the setting. */
  faults?(
    settings: SettingsMembers,
    others: { readonly hasDirectory: boolean },
  ): readonly { readonly path: readonly string[]; readonly message: string }[];
  /** Warnings of `check` about the settings together. */
  warnings?(
    settings: SettingsMembers,
  ): readonly { readonly path: readonly string[]; readonly message: string }[];
  /** Members of `/settings` with facts about files. Their schemas are in `settingsShownShapes`. @param stated the stated settings */
  shown?(settings: SettingsMembers, stated: Shown): Shown;
  /** A sentence for the published API document. */
  documentText?(
    settings: SettingsMembers,
    api: { readonly origin: string; readonly counted: 'request' | 'unit' },
  ): string | undefined;
  /** A line of the configuration that `tollgate init` writes. */
  readonly initLine?: string;
}

/** A file that a setting names. */
export interface SettingsFile {
  /** The path of the setting. */
  readonly path: readonly string[];
  nameIn(settings: SettingsMembers): string | undefined;
  /** Makes members of the settings of the text of the file. @returns a text that begins with a verb if the file is invalid */
  parse(text: string): Partial<SettingsMembers> | string;
}

export interface OwnPath {
  /** The setting that switches the path on. */
  readonly setting: string;
  readonly path: string;
  /** The name of the path in a report, and what to do; by default the setting, and "write another path". */
  readonly name?: string;
  readonly advice?: string;
}

/** What a capability adds to a simulation, each with its description in the API document. The types are in `shared/model.ts`. */
export interface AdviceWords {
  /** Numbers in the figures of a plan (`PlanAdvice`). */
  readonly figures: Readonly<Record<keyof PlanAdvice & string, string>>;
  /** Lines of the configuration by the name of the plan (`Proposals`). */
  readonly proposals: Readonly<Record<keyof Proposals & string, string>>;
}

/**
 * A member of a deprecated operation in the API document. Its schema is in `deprecationShapes`, and the schema of what responses show is in
 * `deprecationShownShapes`. The types of the compiled members are in `DeprecationMembers`.
 */
export interface DeprecationMember {
  readonly name: `x-${string}`;
  /** What is wrong about the member: a message about its value or about its name. */
  faults(operation: {
    readonly stated: StatedDeprecation;
    /** Whether the operation states a member, perhaps with an invalid value. */
    isStated(name: keyof StatedDeprecation): boolean;
  }): Iterable<{ readonly message: string; readonly at?: 'name' }>;
  compile(stated: StatedDeprecationMembers): DeprecationMembers;
  shown(members: DeprecationMembers): DeprecationShownMembers;
}

interface StatedDeprecation extends StatedDeprecationMembers {
  /** Epoch ms. */
  readonly 'x-deprecated-since'?: number | undefined;
  readonly 'x-deprecated-sunset'?: number | undefined;
  readonly 'x-after-sunset'?: Deprecation['afterSunset'] | undefined;
}

// biome-ignore lint/suspicious/noEmptyInterface: capabilities add their members
export interface StatedDeprecationMembers {}
// biome-ignore lint/suspicious/noEmptyInterface: capabilities add their members
export interface DeprecationShownMembers {}
// biome-ignore lint/suspicious/noEmptyInterface: capabilities add their members
export interface StatedPlanMembers {}
// biome-ignore lint/suspicious/noEmptyInterface: capabilities add their members
export interface PlanShownMembers {}

type Shown = Readonly<Record<string, unknown>>;
