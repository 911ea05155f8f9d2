import type { Command } from 'commander';
import { loadSettings, type ValidSettings } from '../../config/load-settings.ts';
import { formatProblems } from '../../config/problems/format-problems.ts';
import type { Settings } from '../../shared/model.ts';
import { defaultBounds } from '../../shared/timeouts-and-sizes.ts';
import { counted } from '../../shared/words/figures.js';
import { adminUrlOf, clientOf, hasToken } from '../admin/find-gateway.ts';
import type { GatewayOptions } from '../command.ts';
import { CommandError } from '../output/command-error.ts';
import { checkUpstreamNames } from './check-upstream-names.ts';
import { gatewayWarnings } from './gateway-warnings.ts';
import { leakedCountWarnings } from './leaked-warnings.ts';
import { requireConfig } from './named-config.ts';

/** Checks a configuration, and prints its problems or its counts. */
export async function check(
  draft: string | undefined,
  options: GatewayOptions,
  command: Command,
): Promise<void> {
  if (draft !== undefined && command.getOptionValueSource('config') === 'cli') {
    command.error('Which configuration? Give FILE or --config FILE, not both.');
  }
  const config = draft ?? requireConfig(options.config);
  const loaded = load(config);
  const { environment, plans, keys, operations, version } = loaded.settings;
  const [ofNames, ofGateway] = await Promise.all([
    checkUpstreamNames(loaded),
    warningsOfGateway(loaded.settings, { ...options, config }),
  ]);
  const warnings = [...loaded.warnings, ...ofNames, ...ofGateway];
  for (const warning of warnings) console.error(`warning: ${warning}`);
  const counts = [
    counted(plans.size, 'plan'),
    counted(keys.size, 'key'),
    counted(operations.length, 'operation'),
  ];
  console.log(`${config}: OK (${environment}, ${counts.join(', ')}, version ${version})`);
  // The process exits explicitly, because a slow DNS lookup would keep it alive. `setImmediate` delays the exit until a write error of
  // standard output is reported.
  setImmediate(() => process.exit());
}

/** Returns warnings of a running gateway. Without a token, only the number of leaked secrets is known. */
async function warningsOfGateway(
  settings: Settings,
  options: GatewayOptions & { readonly config: string },
): Promise<readonly string[]> {
  if (hasToken(process.env)) {
    const asked = { settings, file: options.config, nowMs: Date.now() };
    return gatewayWarnings(asked, () => clientOf(options));
  }
  const url = adminUrlOf(options, settings);
  return url === undefined ? [] : leakedCountWarnings(url, settings, defaultBounds.checkLookupTimeoutMs);
}

/** @throws a CommandError with every problem */
function load(config: string): ValidSettings {
  const loaded = loadSettings({ file: config, env: process.env });
  if (loaded.kind === 'valid') return loaded;
  throw new CommandError(formatProblems(loaded.problems));
}
