// biome-ignore-all format: each entry has a line of its own, which goes with its capability
import { brownoutsMember, brownoutsShape } from '../brownouts/operation-member.ts';
import { guardMember, guardShape } from '../guard/plan-member.ts';
import { holderSettings, holderShape } from '../holder/settings.ts';
import type { DeprecationMember, PlanMember, SettingsPart } from '../interfaces/configuration.ts';

/** The settings that belong to capabilities, and their schemas. */
export const settingsParts: readonly SettingsPart[] = [
  holderSettings,
];
export const settingsShapes = {
  ...holderShape,
};

/** The members of plans that belong to capabilities, and their schemas. */
export const planMembers: readonly PlanMember[] = [
  guardMember,
];
export const planShapes = {
  ...guardShape,
};

/** The members of deprecated operations that belong to capabilities, and their schemas. */
export const deprecationMembers: readonly DeprecationMember[] = [
  brownoutsMember,
];
export const deprecationShapes = {
  ...brownoutsShape,
};
