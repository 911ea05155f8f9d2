// biome-ignore-all format: each entry has a line of its own, which goes with its capability
import { brownoutsMember } from '../brownouts/operation-member.ts';
import { guardMember } from '../guard/plan-member.ts';
import { guardAdvice } from '../guard/what-if/advice-words.ts';
import { holderSettings } from '../holder/settings.ts';
import type { AdviceWords, DeprecationMember, PlanMember, SettingsPart } from '../interfaces/configuration.ts';
import { leaksSettings } from '../leaks/settings.ts';
import { otelSettings } from '../otel/settings/settings.ts';
import { webhooksSettings } from '../webhooks/settings/settings.ts';

/** The settings that belong to capabilities. */
export const settingsParts: readonly SettingsPart[] = [
  holderSettings,
  webhooksSettings,
  leaksSettings,
  otelSettings,
];

/** The members of plans that belong to capabilities. */
export const planMembers: readonly PlanMember[] = [
  guardMember,
];

/** The members of deprecated operations that belong to capabilities. */
export const deprecationMembers: readonly DeprecationMember[] = [
  brownoutsMember,
];

/** What capabilities add to a simulation. */
export const adviceWords: readonly AdviceWords[] = [
  guardAdvice,
];
