import type * as z from 'zod';
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
import type { WebhookEventType } from '../../shared/words/event-names.js';
import type { DeprecationShownMembers } from './words.ts';

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
  /** What the member needs `redis` for, with paths in the plan. */
  needsRedis?(stated: StatedPlanMembers): Iterable<RedisNeed>;
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

/**
 * Settings that belong to a capability. Their schema is in `settingsShapes`. A capability adds the types of the settings as they are stated
 * to `StatedSettingsMembers`, and the types of their effective form to `SettingsMembers` (`shared/model.ts`).
 */
export interface SettingsPart {
  /** The paths of the public listener that the settings switch on. No operation may have them. */
  ownPaths?(settings: StatedSettingsMembers): readonly OwnPath[];
  /** What is wrong about the settings together. */
  faults?(
    settings: StatedSettingsMembers,
    others: {
      readonly hasDirectory: boolean;
      readonly planNames: readonly string[];
      /** Whether a filter can match events of a type. */
      readonly canMatch: (type: WebhookEventType, filter: 'keys' | 'plans' | 'operations') => boolean;
    },
  ): Iterable<SettingFault>;
  /** What the settings need `redis` for. */
  needsRedis?(settings: StatedSettingsMembers): Iterable<RedisNeed>;
  /** The ids of operations in the settings, each list with its path. `check` looks them up. */
  operationsIn?(
    settings: StatedSettingsMembers,
  ): readonly { readonly path: SettingPath; readonly operations: readonly string[] | undefined }[];
  /** What is valid but probably a mistake. */
  warnings?(
    settings: StatedSettingsMembers,
    others: { readonly hasDirectory: boolean; readonly hasKey: (id: string) => boolean },
  ): Iterable<SettingFault>;
  /** The effective form of the settings, if it differs from the stated form. */
  compile?(
    settings: StatedSettingsMembers,
    files: SettingsFiles,
    others: { readonly hasRedis: boolean },
  ): Partial<SettingsMembers>;
  /** The percentages of limits at which the capability wants notices. */
  thresholds?(settings: SettingsMembers): readonly number[];
  /**
   * The values of settings that `/settings` does not show as they are stated, by name. Their schemas are in `settingsShownSchemas`.
   *
   * @param stated the settings as they are stated, with their masks
   */
  shown?(settings: SettingsMembers, stated: Shown): Shown;
  /** Settings that are lists, whose entries are compared one by one. */
  readonly lists?: Readonly<Record<string, SettingList>>;
  /** A sentence for the published API document. */
  documentText?(
    settings: StatedSettingsMembers,
    api: { readonly origin: string; readonly counted: 'request' | 'unit' },
  ): string | undefined;
  /** A line of the configuration that `tollgate init` writes. */
  readonly initLine?: string;
}

/** Makes the schema of a setting as `/settings` shows it. @param stated the stated members of an entry, with their masks */
export type ShownSchema = (stated: Readonly<Record<string, z.ZodType>>) => z.ZodType;

export type SettingPath = readonly (string | number)[];

interface SettingFault {
  readonly path: SettingPath;
  /** Whether the name of the setting is at fault, and not its value. */
  readonly isName?: boolean;
  readonly message: string;
  /** The path of another setting that is part of the fault. */
  readonly related?: SettingPath;
}

/** A setting that `check` refuses in a configuration without `redis`. */
export interface RedisNeed {
  readonly path: SettingPath;
  /** What would be lost without Redis, such as "a restart would lose the events". */
  readonly lost: string;
  /** What the operator can do in place of adding `redis`, such as "remove `notify`". */
  readonly instead: string;
}

/** The files that settings name. Relative names are relative to the folder of the configuration. */
export interface SettingsFiles {
  /** Reads a file; undefined if it cannot be read, which is a problem of the configuration. @param path the path of the setting */
  read(file: string, path: SettingPath): string | undefined;
  /** As `read`, for a PEM file with authorities of certificates. */
  readAuthorities(file: string, path: SettingPath): string | undefined;
  /** The value of an environment variable, or of the file that `NAME_FILE` names. @param path the setting that reads the variable */
  variable(name: string, path: SettingPath): string | undefined;
  /** Reports a problem of a setting. */
  refuse(path: SettingPath, message: string): void;
  /** Reports a problem in a file. @param line the line number, from 1 */
  report(file: string, fault: { readonly line: number; readonly message: string }): void;
}

export interface SettingList {
  /** The member that identifies an entry. */
  readonly by: string;
  readonly noun: string;
}

interface OwnPath {
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
export interface StatedPlanMembers {}
// biome-ignore lint/suspicious/noEmptyInterface: capabilities add their members
export interface StatedSettingsMembers {}
// biome-ignore lint/suspicious/noEmptyInterface: capabilities add their members
export interface PlanShownMembers {}

type Shown = Readonly<Record<string, unknown>>;
