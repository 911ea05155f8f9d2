import { dataLostText } from '../../fleet/kinds/stores.ts';
import type { Fault, FoundFault } from '../../fleet/process-state.ts';
import { counted, figure } from '../../shared/words/figures.js';
import { type GatewayState, unreadForwardedForText } from '../readiness.ts';

/** The largest length of the text about an invalid file. The page Changes shows the whole error. */
const errorCharsMax = 300;

/** @param text may end without a full stop */
function shortened(text: string): string {
  return /[.!?]$/.test(text) ? text.slice(0, errorCharsMax) : `${text.slice(0, errorCharsMax)}.`;
}

/**
 * Returns the faults of a gateway as a whole. Outages of Redis and of targets are not included, because each process
 * reports these outages itself. Each gateway publishes its own faults, so that any gateway can show the faults of all
 * gateways.
 */
export function judgeGateway(state: GatewayState): FoundFault[] {
  const {
    phase,
    workers,
    config,
    store,
    dataLostAt,
    leakedSecrets,
    certificates,
    unreadForwardedFor,
    usage,
    upstreams,
    parts,
  } = state;
  const faults: FoundFault[] = [];
  const find = (severity: Fault['severity'], code: string, text: string, sinceAt?: string) => {
    faults.push({ severity, code, text, sinceAt });
  };

  if (phase === 'draining')
    find('notice', 'draining', 'A gateway drains: it finishes its last requests, and ends.');
  if (phase === 'serving' && workers !== undefined && workers.serving < workers.configured) {
    if (workers.serving === 0)
      find('bad', 'no_worker', 'The gateway that answers has no worker that serves requests.');
    else {
      const text = `A gateway has ${figure(workers.serving)} of its ${counted(workers.configured, 'worker')}.`;
      find('warning', 'workers_missing', text);
    }
  }
  if (store.kind === 'redis' && store.missingCommands !== undefined) {
    const text = `The Redis user may not run ${store.missingCommands.join(', ')}: its ACL must allow them.`;
    find('bad', 'redis_commands_refused', text);
  }
  if (dataLostAt !== undefined) find('warning', 'redis_emptied', dataLostText, dataLostAt);
  if (leakedSecrets > 0) {
    const text = `The configuration still has ${counted(leakedSecrets, 'leaked secret')}: tollgate check names the key of each.`;
    find('warning', 'leaked_secrets', text);
  }
  faults.push(...parts.flatMap((part) => part.faults));
  const { kept = [], waitsForRestart = [] } = config;
  for (const { file, reason, since, revokes } of kept) {
    const without = revokes ? ', without the keys and tokens that it revokes' : '';
    const text = `${file} is not valid and keeps its last valid content${without}: ${reason}`;
    find('warning', 'configuration_invalid', shortened(text), since);
  }
  if (config.lastError !== undefined && kept.length === 0) {
    const [problem = ''] = config.lastError.split('\n', 1);
    const text = `The configuration on disk is not valid, so configuration ${config.version.slice(0, 6)} stays in force: ${problem}`;
    find('warning', 'configuration_invalid', shortened(text));
  }
  if (waitsForRestart.length > 0) {
    const text = `A change of ${waitsForRestart.join(', ')} takes effect when the gateway is started again.`;
    find('notice', 'restart_needed', text);
  }
  for (const [name, { awaited }] of Object.entries(upstreams)) {
    if (awaited?.lookupError === undefined) continue;
    const text = `The upstream ${name} stays as it was: the host of ${awaited.url} cannot be looked up (${awaited.lookupError}).`;
    find('warning', 'upstream_edit_waits', text, awaited.lookupErrorSinceAt);
  }
  for (const [listener, { notice, noticeSinceAt, isExpired }] of Object.entries(certificates)) {
    if (notice === undefined) continue;
    const severity = isExpired && listener === 'listen' ? 'bad' : 'warning';
    find(
      severity,
      isExpired ? 'certificate_expired' : 'certificate_expires',
      asSentence(notice),
      noticeSinceAt,
    );
  }
  if (unreadForwardedFor !== undefined) {
    const text = asSentence(unreadForwardedForText(unreadForwardedFor));
    find('warning', 'forwarded_for_unread', text, unreadForwardedFor.sinceAt);
  }
  if (usage?.pausedBecause !== undefined) {
    find('warning', 'recording_paused', `The usage record pauses: ${usage.pausedBecause}.`);
  }
  return faults;
}

function asSentence(text: string): string {
  return `${text.charAt(0).toUpperCase()}${text.slice(1)}.`;
}
