import { defaultBounds } from '../../../gateway/shared/timeouts-and-sizes.ts';
import type { Comparison } from './compare-fleet.ts';
import type { Inputs } from './inputs.ts';
import { type Plan, sum } from './plan.ts';
import {
  type CostName,
  costNames,
  type FleetFigure,
  type FleetRun,
  fleetFigures,
  type UnitCosts,
} from './unit-costs.ts';
import type { Wall } from './walls.ts';

/** Prints a table whose first row is its head. */
export interface Table {
  readonly title: string;
  readonly rows: readonly (readonly string[])[];
}

/** Prints the whole plan as tables. The tables name the unit costs behind each figure. */
export function tablesOf(plan: Plan, walls: readonly Wall[]): readonly Table[] {
  return [
    gatewaysTable(plan),
    redisTable(plan),
    memoryTable(plan),
    networkTable(plan),
    failureTable(plan),
    wallsTable(plan, walls),
  ];
}

/** Describes the inputs of a plan. */
export function describeInputs(inputs: Inputs, plan: Plan): string {
  const {
    requestsPerSecond,
    keys,
    activeKeys,
    skew,
    refusedShare,
    zones,
    replicas,
    headroom,
    targets,
    connections,
  } = inputs;
  const { directory, keepDays, meanShare, perKey } = inputs;
  const distribution =
    skew === 0
      ? 'All keys send equally, so each sends'
      : `By Zipf's law with exponent ${skew}, the most active key sends`;
  return [
    `The load is ${count(requestsPerSecond)} requests/s at the peak, and ${percent(meanShare)} of the peak on average over a day.`,
    `${count(keys)} keys are in the ${directory ? 'directory' : 'configuration'}, and ${count(activeKeys)} send requests within a day.`,
    `${distribution} ${count(plan.load.hottest.requests)} requests/s.`,
    `${percent(refusedShare)} of the requests are refused.`,
    `There are ${count(connections)} client connections and ${count(targets)} backend addresses.`,
    `The fleet has ${zones} ${zones === 1 ? 'zone' : 'zones'}, ${replicas} ${replicas === 1 ? 'replica' : 'replicas'} of each master, and ${percent(headroom)} of each core kept free.`,
    Number.isFinite(perKey) ? `Each key is served by ${perKey} processes.` : 'Any process serves any key.',
    keepDays === 0 ? 'No usage is recorded.' : `Usage is kept for ${keepDays} days.`,
  ].join(' ');
}

function gatewaysTable({
  inputs,
  load,
  processes,
  processesLeft,
  coreUse,
  coreUseLeft,
  processBytes,
}: Plan): Table {
  const { requests, calls, record, lookUps, checks } = load.gatewayCpu;
  const parts: [string, number, string][] = [
    ['requests', requests, 'requestCpu, refusedCpu'],
    ['calls to Redis', calls, 'callCpu, callReadCpu'],
    ['the usage record', record, 'batchCpu, callReadCpu'],
    ['look-ups in the directory, and keys that are unpacked', lookUps, 'lookUpCpu, unpackCpu'],
    ['health checks', checks, 'checkCpu, callCpu, callReadCpu'],
  ];
  return {
    title: 'Gateways',
    rows: [
      ['what', 'how much', 'computed from'],
      ...parts
        .filter(([, cores]) => cores > 0)
        .map(([what, cores, from]) => [`cores for ${what}`, cores.toFixed(1), from]),
      [
        '**processes**, one per core',
        `**${count(processes)}**, each ${percent(coreUse)} full`,
        'all rows above, with headroom for one failed zone',
      ],
      ...(inputs.zones === 1
        ? []
        : [
            [
              'processes that remain with one zone down',
              `${count(processesLeft)}, each ${percent(coreUseLeft)} full`,
              '',
            ],
          ]),
      [
        'memory of a process',
        bytes(processBytes),
        'processBytes, connectionBytes, and the memory of the keys in the next row',
      ],
      [
        'keys in the memory of a process',
        `${count(load.held.recorded)} keys in the usage recorder, ${count(load.held.remembered)} keys with their last counts, and ${count(load.held.directory + load.held.packed)} keys of the directory, of which ${count(load.held.packed)} are packed`,
        'usageKeysMax, rememberedKeysMax, directoryCachedKeysMax, directoryPackedBytesMax',
      ],
    ],
  };
}

function redisTable({
  inputs,
  load,
  processes,
  shards,
  shardsForCpu,
  shardsForMemory,
  redisConnections,
  hotKeyRequestsMax,
  hotKeyCallsMax,
}: Plan): Table {
  const { decisions, batches, batchCalls, lookUps, activeEntries, redisCpu, hottest } = load;
  const cores = (value: number) => `${value.toFixed(1)} cores`;
  const rows: [string, string, string][] = [
    [
      'decision calls/s',
      `${count(decisions)} (${(decisions / inputs.requestsPerSecond).toFixed(2)} per request), which take ${cores(redisCpu.decisions)}`,
      'turnSeconds; decisionCpu, readCpu',
    ],
    [
      'batches of the usage record/s',
      `${count(batches)} in ${count(batchCalls)} calls, which take ${cores(redisCpu.record)}`,
      'usageFlushIntervalMs, usageQuietRounds, usageQuietRequestsMax, usageRecordsPerCallMax; usageCpu, senderCpu, readCpu',
    ],
    [
      'look-ups in the directory/s',
      `${count(lookUps)}, which take ${cores(redisCpu.lookUps)}`,
      'directoryCachedKeysMax, directoryPackedBytesMax, directoryGenerationKeptMs; readKeyCpu',
    ],
    [
      'entries/s in the index of active keys',
      `${count(activeEntries)}, which take ${cores(redisCpu.activeIndex)} on one slot`,
      'usageActiveNotedMs, usageActiveKeysMax; activeKeyCpu',
    ],
    [
      'the list of processes, and the record of all operations',
      `${cores(redisCpu.presence)} for the list and ${cores(redisCpu.operations)} for the record, each on one slot`,
      'presenceCpu, operationsCpu',
    ],
    [
      'calls that share the results of health checks/s',
      `${count(load.healthCalls)}, which take ${redisCpu.health.toFixed(2)} cores on one slot`,
      'healthPauseMs, healthCheckersPeriodMs; healthCpu, checkerCpu',
    ],
    [
      'replication, and the work of idle servers',
      `${cores(redisCpu.replicas)} for replication and ${cores(redisCpu.idle)} for idle servers`,
      'replicaCpu; serverCpu',
    ],
  ];
  return {
    title: 'Redis Cluster',
    rows: [
      ['what', 'how much', 'computed from'],
      ...rows,
      [
        '**masters**, one core each',
        `**${count(shards)}** (CPU requires ${count(shardsForCpu)}, and memory requires ${count(shardsForMemory)}), and ${count(shards * inputs.replicas)} replicas`,
        'all rows above, and the memory in the next table',
      ],
      [
        'connections to a master',
        count(redisConnections),
        'two connections of each process, or three with a key directory',
      ],
      [
        'the hottest key',
        `${count(hottest.requests)} requests/s cause ${count(hottest.calls)} calls/s, which take ${hottest.redisCpu.toFixed(2)} cores`,
        'hotDecisionCpu, readCpu',
      ],
      [
        'the largest rate of one key on a dedicated master',
        Number.isFinite(hotKeyRequestsMax)
          ? `${count(hotKeyRequestsMax)} requests/s, in ${count(hotKeyCallsMax)} calls/s from ${count(Math.min(inputs.perKey, processes))} processes`
          : `the rate of its processes: they make less than ${count(hotKeyCallsMax)} calls/s for one key`,
        'turnSeconds, hotDecisionCpu',
      ],
    ],
  };
}

function memoryTable({ inputs, redisBytes, shards }: Plan): Table {
  return {
    title: 'Memory of all Redis masters (each set of replicas needs the same again)',
    rows: [
      ['what', 'how much', 'computed from'],
      ['counts', bytes(redisBytes.counts), 'countsBytes'],
      ['directory', bytes(redisBytes.directory), 'directoryBytes'],
      [
        `usage record of ${inputs.keepDays} days, kept for two more days`,
        bytes(redisBytes.record),
        'usageDayBytes, usageMinuteBytes, usageSenderBytes',
      ],
      ['totals of 400 days', bytes(redisBytes.totals), 'totalsBytes'],
      [
        'memory of each master',
        `${bytes(sum(redisBytes) / shards)} of ${bytes(inputs.shardBytesMax)}; the usage record pauses at ${percent(defaultBounds.usageMemoryShareMax)}`,
        '',
      ],
    ],
  };
}

function networkTable({ inputs, load, processes, shards }: Plan): Table {
  const { requestsPerSecond, refusedShare, requestOctets, responseOctets } = inputs;
  const clients = requestsPerSecond * (requestOctets + responseOctets);
  const targets = clients * (1 - refusedShare);
  const line = (what: string, octets: number, from: string, each?: [string, number]) => [
    what,
    `${bits(octets)}${each === undefined ? '' : `, ${bits(octets / each[1])} per ${each[0]}`}`,
    from,
  ];
  return {
    title: 'Network, both directions',
    rows: [
      ['what', 'how much', 'computed from'],
      line('clients', clients, 'the inputs', ['process', processes]),
      line('backends', targets, 'the inputs', ['process', processes]),
      line('gateways to Redis', load.redisOctets, 'decisionOctets, usageOctets, lookUpOctets', [
        'master',
        shards,
      ]),
      line('masters to replicas', load.replicationOctets, 'decisionReplicated, usageReplicated', [
        'master',
        shards,
      ]),
    ],
  };
}

function failureTable({ inputs, processes, processesLeft, shards }: Plan): Table {
  const { zones, connections, replicas } = inputs;
  if (zones === 1)
    return {
      title: 'A zone fails',
      rows: [
        ['what', 'how much'],
        ['all of it', 'there is one zone'],
      ],
    };
  const lost = 1 / zones;
  const keys =
    replicas === 0
      ? `the keys of ${count(shards * lost)} masters: each process decides them without Redis until the masters return, and their counts, directory entries and records are lost`
      : `the keys of ${count(shards * lost)} masters. Each process decides these keys without Redis until a replica is promoted (about twice the node timeout; 2 to 3 s in faults/figures.md, row 35). Until then, each of ${count(processesLeft)} processes admits at most one more full limit of a key. Writes that were not replicated are lost`;
  return {
    title: 'A zone fails',
    rows: [
      ['what', 'how much'],
      ['processes in reserve', count(processes - processesLeft)],
      ['lost requests', `the requests in progress on ${count(processes * lost)} processes`],
      ['connections that clients reopen', count(connections * lost)],
      ['affected keys', keys],
    ],
  };
}

function wallsTable({ inputs }: Plan, walls: readonly Wall[]): Table {
  const when = ({ comesAt }: Wall) =>
    !Number.isFinite(comesAt)
      ? 'not reached at 100 times this load'
      : `${comesAt <= inputs.requestsPerSecond ? '**reached**, at ' : ''}${rounded(comesAt)} requests/s`;
  return {
    title: 'Bottlenecks that more machines alone do not remove, the nearest first',
    rows: [
      ['bottleneck', 'reached at', 'at these inputs', 'remedy'],
      ...walls.map((wall) => [wall.name, when(wall), wall.now, wall.remedy]),
    ],
  };
}

/** Prints several plans side by side. */
export function variantsTable(
  answers: readonly { readonly title: string; readonly plan: Plan; readonly walls: readonly Wall[] }[],
): Table {
  const row = (what: string, figure: (plan: Plan) => string) => [
    what,
    ...answers.map(({ plan }) => figure(plan)),
  ];
  return {
    title: 'With other traffic, and with a balancer that routes by key',
    rows: [
      ['what', ...answers.map(({ title }) => title)],
      row('processes', (plan) => count(plan.processes)),
      row('masters', (plan) => count(plan.shards)),
      row('decision calls/s', (plan) => count(plan.load.decisions)),
      row('batches of the usage record/s', (plan) => count(plan.load.batches)),
      row('calls with batches/s', (plan) => count(plan.load.batchCalls)),
      row('look-ups in the directory/s', (plan) => count(plan.load.lookUps)),
      row('memory of a process', (plan) => bytes(plan.processBytes)),
      row('memory of all masters', (plan) => bytes(sum(plan.redisBytes))),
      ['the first bottleneck', ...answers.map(({ walls }) => firstOf(walls, 0))],
      ['the second bottleneck', ...answers.map(({ walls }) => firstOf(walls, 1))],
    ],
  };
}

function firstOf(walls: readonly Wall[], at: number): string {
  const wall = walls[at];
  return wall === undefined ? '' : `${wall.name}, at ${rounded(wall.comesAt)} requests/s`;
}

export function costsTable({ values, sources }: UnitCosts): Table {
  const names = Object.keys(costNames) as CostName[];
  return {
    title: 'Unit costs',
    rows: [
      ['name', 'value', 'what', 'measured by'],
      ...names.map((name) => [name, costText(name, values[name]), costNames[name], sources[name]]),
    ],
  };
}

/** Prints the measurements of a small fleet beside the model's figures. */
export function comparisonTable(runs: readonly { run: FleetRun; figures: readonly Comparison[] }[]): Table {
  const rows = runs.flatMap(({ run, figures }) =>
    figures.map(({ figure, predicted, measured }, index) => [
      index === 0 ? describeRun(run) : '',
      fleetFigures[figure],
      figureText(figure, predicted),
      figureText(figure, measured),
      `${predicted > 0 ? signed((measured - predicted) / predicted) : ''}`,
    ]),
  );
  return {
    title: 'The model and a small fleet',
    rows: [['load', 'for each request, process or key', 'model', 'measured', 'difference'], ...rows],
  };
}

/** A number of calls per request below this value is too small for a useful comparison, so `describeDifferences` omits it. */
const sharesMin = 0.005;

/** The model's error for each figure. */
export function describeDifferences(comparisons: readonly Comparison[]): string {
  const figures = Map.groupBy(
    comparisons.filter(({ figure, predicted }) => isAmount(figure) || predicted >= sharesMin),
    ({ figure }) => figure,
  );
  const ranges = [...figures].map(([figure, all]) => {
    const off = all.map(({ predicted, measured }) => (measured - predicted) / predicted);
    const [least, most] = [signed(Math.min(...off)), signed(Math.max(...off))];
    return `${fleetFigures[figure].replace(/, (?:µs|MiB)$/, '')} ${least === most ? least : `${least} to ${most}`}`;
  });
  return `The measured figures differ from the model by these shares: ${ranges.join('; ')}.`;
}

function isAmount(figure: FleetFigure): boolean {
  return /(?:Cpu|Octets|Bytes)$/.test(figure);
}

function describeRun({ load, requestsPerSecond, aloneShare }: FleetRun): string {
  const alone =
    aloneShare < 0.001
      ? ''
      : `, ${(aloneShare * 100).toFixed(1)} % decided without Redis because its reply was late`;
  return `${load}: ${count(requestsPerSecond)} requests/s${alone}`;
}

export function toMarkdown({ title, rows: [head = [], ...rows] }: Table, level = '##'): string {
  const line = (cells: readonly string[]) => `| ${cells.join(' | ')} |`;
  return [`${level} ${title}`, '', line(head), line(head.map(() => '---')), ...rows.map(line)].join('\n');
}

/** Prints a table for a terminal. All columns except the last are padded. */
export function toText({ title, rows }: Table): string {
  const plain = rows.map((cells) => cells.map((cell) => cell.replaceAll(/\*\*|`/g, '')));
  const columns = Math.max(...plain.map((cells) => cells.length));
  const widths = Array.from({ length: columns - 1 }, (_, at) =>
    Math.max(...plain.map((cells) => (cells[at] ?? '').length)),
  );
  const lines = plain.map(
    (cells) =>
      `  ${cells
        .map((cell, at) => cell.padEnd(widths[at] ?? 0))
        .join('  ')
        .trimEnd()}`,
  );
  return [title.toUpperCase(), ...lines.slice(1)].join('\n');
}

function costText(name: CostName, value: number): string {
  if (/Cpu$/.test(name)) return `${(value * 1e6).toFixed(value < 1e-5 ? 2 : 1)} µs`;
  return name.endsWith('urnSeconds')
    ? `${(value * 1e3).toFixed(2)} ms`
    : value >= 1e6
      ? bytes(value)
      : `${decimals(value)} octets`;
}

function figureText(figure: FleetFigure, value: number): string {
  if (figure.endsWith('Cpu')) return (value * 1e6).toFixed(0);
  if (figure === 'processBytes') return (value / 2 ** 20).toFixed(0);
  return figure.endsWith('Bytes') || figure.endsWith('Octets')
    ? count(value)
    : value.toFixed(value < 0.1 ? 4 : 2);
}

const decimals = (value: number) => (value < 100 ? value.toFixed(1) : count(value));
const count = (value: number) =>
  value > 0 && value < 10 && !Number.isInteger(value)
    ? value.toFixed(1)
    : Math.round(value).toLocaleString('en');
const percent = (share: number) => `${Math.round(share * 100)} %`;
const signed = (share: number) => `${share >= 0 ? '+' : '−'}${Math.abs(share * 100).toFixed(0)} %`;
const rounded = (value: number) => Number(value.toPrecision(2)).toLocaleString('en');

function bytes(value: number): string {
  for (const [unit, size] of [
    ['TiB', 2 ** 40],
    ['GiB', 2 ** 30],
    ['MiB', 2 ** 20],
  ] as const) {
    if (value >= size || unit === 'MiB')
      return `${(value / size).toFixed(value / size < 10 ? 1 : 0)} ${unit}`;
  }
  return '';
}

function bits(octetsPerSecond: number): string {
  const value = 8 * octetsPerSecond;
  return value >= 1e9 ? `${(value / 1e9).toFixed(1)} Gbit/s` : `${(value / 1e6).toFixed(1)} Mbit/s`;
}
