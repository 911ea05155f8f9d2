import { readFileSync } from 'node:fs';
import { Ajv2020 } from 'ajv/dist/2020.js';
import { loadSettings } from '../../gateway/config/load-settings.ts';
import { formatProblems } from '../../gateway/config/problems/format-problems.ts';
import { configFolder, mainDocument, redisLine } from '../support/config-folder.ts';

/** The main document with the plan `enterprise` as it is written. */
export const withPlan = (written: string) =>
  mainDocument.replace('enterprise: custom', `enterprise: ${written}`) + redisLine;

/** Loads a configuration with this plan, and with a key of the plan if its members are given. Returns the settings, or the first problem. */
export function load(written: string, key = '') {
  const keys = key === '' ? '[]' : `- { id: acme, plan: enterprise, secrets: [], ${key} }`;
  const folder = configFolder({ 'tollgate.yaml': withPlan(written), 'keys.yaml': keys });
  const loaded = loadSettings({ file: folder.file, env: { CUSTOM: 'true' } });
  if (loaded.kind === 'valid') return loaded.settings;
  return formatProblems(loaded.problems).replaceAll(folder.pathOf(''), '').split('\n')[0];
}

const ajv = new Ajv2020({ strict: false });
/** Whether the published schema accepts a configuration. */
export const isValidForEditors = ajv.compile(JSON.parse(readFileSync('config/tollgate.schema.json', 'utf8')));

export const keyFields = 'at least one of perSecond, perMinute, perHour, perDay, perMonth';
