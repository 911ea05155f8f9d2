import { lookup } from 'node:dns/promises';
import { isIP } from 'node:net';
import type { Command } from 'commander';
import { loadSettings, type ValidSettings } from '../../config/load-settings.ts';
import { formatProblems } from '../../config/problems/format-problems.ts';
import { bareHostname } from '../../shared/addresses/address-group.ts';
import type { Settings } from '../../shared/model.ts';
import { withinDeadline } from '../../shared/structures/within-deadline.ts';
import { defaultBounds } from '../../shared/timeouts-and-sizes.ts';
import { counted } from '../../shared/words/figures.js';
import { adminUrlOf, clientOf, hasToken } from '../admin/find-gateway.ts';
import type { GatewayOptions } from '../command.ts';
import { CommandError } from '../output/command-error.ts';
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

/**
 * Resolves the host name of each upstream, and returns a sentence for each failure. Only the command `check` uses this function.
 * During an outage of DNS, the gateway must still start, and edits must still take effect.
 */
async function checkUpstreamNames({ upstreamUrls }: ValidSettings): Promise<readonly string[]> {
  const { checkLookupTimeoutMs: timeoutMs } = defaultBounds;
  const found = await Promise.all(
    upstreamUrls.map(async ({ url, place: { file, line, column } }) => {
      const hostname = bareHostname(new URL(url));
      const reason = await lookupFailure(hostname, timeoutMs);
      if (reason === undefined) return [];
      const hint = 'a typing error, or a name that is known only where the gateway runs?';
      return [
        `${file}:${line}:${column}: the host \`${hostname}\` cannot be looked up here (${reason}): ${hint}`,
      ];
    }),
  );
  return found.flat();
}

/** Resolves a name as the gateway does. Returns the resolver's error code, or reports that the lookup took too long. */
async function lookupFailure(hostname: string, timeoutMs: number): Promise<string | undefined> {
  if (isIP(hostname) !== 0) return undefined;
  const looked = lookup(hostname, { all: true }).then(
    () => undefined,
    (error: unknown) => (error instanceof Error && 'code' in error ? String(error.code) : String(error)),
  );
  return withinDeadline(looked, timeoutMs, () => `not within ${timeoutMs} ms`);
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
