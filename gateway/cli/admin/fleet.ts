import { type FleetState, getStateWire } from '../../admin/wires/fleet/fleet.ts';
import type { GatewayProcess } from '../../admin/wires/fleet/processes.ts';
import { duration, milliseconds, rate } from '../../shared/words/figures.js';
import type { Asking } from '../command.ts';
import type { Screen } from '../output/screen.ts';
import { show } from '../output/show.ts';
import { type Column, table } from '../output/table.ts';
import { clientOf } from './find-gateway.ts';

export async function listProcesses(options: Asking): Promise<void> {
  const { body, json } = await (await clientOf(options)).ask(getStateWire);
  const { isComplete, missing, answeredBy, processes } = Object(json);
  show(options, { body, json: { isComplete, missing, answeredBy, processes } }, processesLines);
}

function processesLines(state: FleetState, screen: Screen, nowMs: number): readonly string[] {
  return table(processColumns(state, nowMs), state.processes, screen);
}

/** Eight digits suffice to distinguish versions of the configuration. */
const versionDigits = 8;

export function processColumns(
  { processes, config }: Pick<FleetState, 'processes' | 'config'>,
  nowMs: number,
): readonly Column<GatewayProcess>[] {
  const usual = usualVersion(processes, config.version);
  return [
    { title: 'PROCESS', cell: ({ host, pid }) => `${host}:${pid}`, cutsTo: 10 },
    { title: 'WORKER', cell: ({ worker }) => worker, align: 'right', isOptional: true },
    {
      title: 'PHASE',
      cell: ({ phase }) => ({ text: phase, tone: phase === 'serving' ? undefined : 'warning' }),
    },
    { title: 'UP', cell: ({ startedAt }) => duration(nowMs - Date.parse(startedAt)), align: 'right' },
    { title: 'REQ/S', cell: ({ requestsPerSecond }) => rate(requestsPerSecond), align: 'right' },
    { title: 'P50 MS', cell: ({ p50Ms }) => milliseconds(p50Ms), align: 'right' },
    { title: 'P99 MS', cell: ({ p99Ms }) => milliseconds(p99Ms), align: 'right' },
    { title: 'IN FLIGHT', cell: ({ inFlight }) => inFlight, align: 'right', isOptional: true },
    {
      title: 'TARGETS',
      align: 'right',
      cell({ targets, healthyTargets }) {
        const isHealthy = targets > 0 && healthyTargets === targets;
        return { text: `${healthyTargets} of ${targets}`, tone: isHealthy ? undefined : 'bad' };
      },
    },
    {
      title: 'VERSION',
      cell({ configVersion }) {
        const text = configVersion.slice(0, versionDigits);
        return configVersion === usual ? text : { text: `${text} other`, tone: 'bad' };
      },
    },
  ];
}

/**
 * Returns the configuration version that most processes have. If two versions are equally common, returns the version of the
 * process that answered.
 */
export function usualVersion(
  processes: readonly Pick<GatewayProcess, 'configVersion'>[],
  ownVersion: string,
): string {
  const counts = new Map<string, number>([[ownVersion, 0]]);
  for (const { configVersion } of processes) counts.set(configVersion, (counts.get(configVersion) ?? 0) + 1);
  const [first] = [...counts].sort(([, a], [, b]) => b - a);
  return first?.[0] ?? ownVersion;
}
