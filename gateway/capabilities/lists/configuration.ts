// biome-ignore-all format: each entry has a line of its own, which goes with its capability
import { guardMember, guardShape } from '../guard/plan-member.ts';
import { holderSettings, holderShape } from '../holder/settings.ts';
import type { PlanMember, SettingsPart } from '../interfaces/configuration.ts';
import { webhooksShape } from '../webhooks/settings/receiver-schema.ts';
import { webhooksSettings } from '../webhooks/settings/settings.ts';

/** The settings that belong to capabilities, and their schemas. */
export const settingsParts: readonly SettingsPart[] = [
  holderSettings,
  webhooksSettings,
];
export const settingsShapes = {
  ...holderShape,
  ...webhooksShape,
};

/** The members of plans that belong to capabilities, and their schemas. */
export const planMembers: readonly PlanMember[] = [
  guardMember,
];
export const planShapes = {
  ...guardShape,
};
