import { parseArgs } from 'node:util';

/** The known traffic, and the requirements of the fleet. */
export interface Inputs {
  readonly requestsPerSecond: number;
  readonly keys: number;
  /** The number of keys that send requests within a day. */
  readonly activeKeys: number;
  /** Zipf's exponent for the distribution of requests among keys; 0: all keys send requests at the same rate. */
  readonly skew: number;
  readonly refusedShare: number;
  readonly requestOctets: number;
  readonly responseOctets: number;
  readonly connections: number;
  readonly targets: number;
  /** The number of replicas of each Redis master. */
  readonly replicas: number;
  readonly zones: number;
  /** The number of processes that serve a key; Infinity: all. */
  readonly perKey: number;
  /** The share of each core that stays free, for gateways and for Redis. */
  readonly headroom: number;
  /** The average rate over a day, as a share of `requestsPerSecond`. */
  readonly meanShare: number;
  readonly directory: boolean;
  /** The number of days for which usage is recorded; 0: no usage record. */
  readonly keepDays: number;
  /** The `maxmemory` setting of one Redis server. */
  readonly shardBytesMax: number;
}

interface NumberOption {
  readonly is: string;
  /** The default value, which may depend on other values. */
  readonly default: (given: (name: string) => number) => number;
  readonly min: number;
  readonly max: number;
  readonly isWhole: boolean;
}

type OptionParts = [is: string, byDefault: number | NumberOption['default'], min: number, max: number];

function number(...[is, byDefault, min, max]: OptionParts): NumberOption {
  return {
    is,
    default: typeof byDefault === 'number' ? () => byDefault : byDefault,
    min,
    max,
    isWhole: false,
  };
}

function whole(...parts: OptionParts): NumberOption {
  return { ...number(...parts), isWhole: true };
}

/** The number of keys above which the plan assumes by default that the keys are in the directory. */
const configuredKeysMax = 100_000;
const gibibyte = 2 ** 30;

const options: Readonly<Record<string, NumberOption>> = {
  requests: number('requests a second at the peak', Number.NaN, 1, 1e9),
  keys: whole('number of keys', Number.NaN, 1, 1e9),
  'active-keys': whole('keys that send requests within a day (all)', (given) => given('keys'), 1, 1e9),
  skew: number(
    "Zipf's exponent: the key of rank i sends in proportion to i^-skew; 0: all keys equally",
    1,
    0,
    3,
  ),
  refused: number('share of the requests of each key that its limits refuse', 0.05, 0, 1),
  'request-octets': number('octets of a request', 500, 1, 1e9),
  'response-octets': number('octets of a response', 1_500, 1, 1e9),
  connections: whole(
    'client connections (a tenth of --requests)',
    (given) => Math.ceil(given('requests') / 10),
    1,
    1e9,
  ),
  targets: whole(
    'backend addresses (one for each 5,000 requests/s)',
    (given) => Math.ceil(given('requests') / 5_000),
    1,
    1e6,
  ),
  replicas: whole('replicas of each master of Redis', 1, 0, 5),
  zones: whole('zones among which the machines are divided; one zone may fail', 3, 1, 10),
  'per-key': whole(
    'processes that serve a key, if the balancer hashes the Authorization field (all)',
    Number.POSITIVE_INFINITY,
    1,
    Number.POSITIVE_INFINITY,
  ),
  headroom: number('share of each core that stays free', 0.4, 0, 0.95),
  mean: number('average rate of a day as a share of --requests', 0.5, 0.001, 1),
  directory: whole(
    '1: keys are in the directory, 0: in the configuration (1 above 100,000 keys)',
    (given) => (given('keys') > configuredKeysMax ? 1 : 0),
    0,
    1,
  ),
  'keep-days': whole('days that the usage record is kept; 0: no record', 8, 0, 90),
  'shard-memory': number('maxmemory of a server of Redis, GiB', 16, 0.1, 4_096),
};

/** The command and its arguments. */
export type Command = (
  | { readonly kind: 'print'; readonly inputs: Inputs; readonly isCalibrated: boolean }
  | { readonly kind: 'measure' | 'page' }
) & {
  /** The file of a benchmark report. */
  readonly results?: string;
  readonly quick: boolean;
};

export const usage = `npm run capacity -- --requests N --keys N [options]      prints the needs of a fleet for this load
npm run capacity -- --measure [--quick]                  measures unit costs and a small fleet, in a quarter of an hour
npm run capacity -- --page                               writes the measured costs and figures into test/bench/capacity.md

${Object.entries(options)
  .map(([name, option]) => `  --${name.padEnd(16)} ${option.is}${defaultText(option)}`)
  .join('\n')}
  --results FILE     a JSON report of the benchmark (the newest valid report in test/bench/results)
  --no-calibration   uses the CPU costs as measured; by default, five seconds of load measure the speed of this machine`;

function defaultText(option: NumberOption): string {
  const value = option.default(() => Number.NaN);
  return Number.isNaN(value) || /\(/.test(option.is) ? '' : ` (${value})`;
}

/** @throws Error with one sentence that names the option */
export function readCommand(args: readonly string[]): Command {
  const { values } = parseArgs({
    args: [...args],
    options: {
      ...Object.fromEntries(Object.keys(options).map((name) => [name, { type: 'string' as const }])),
      results: { type: 'string' },
      measure: { type: 'boolean', default: false },
      quick: { type: 'boolean', default: false },
      page: { type: 'boolean', default: false },
      'no-calibration': { type: 'boolean', default: false },
    },
  });
  const given = values as Readonly<Record<string, unknown>> as Readonly<Record<string, string | undefined>>;
  const common = {
    quick: values.quick === true,
    ...(typeof given.results === 'string' && { results: given.results }),
  };
  if (values.measure) return { kind: 'measure', ...common };
  if (values.page) return { kind: 'page', ...common };
  const isCalibrated = values['no-calibration'] !== true;
  return { kind: 'print', inputs: readInputs(given), isCalibrated, ...common };
}

/** @throws Error with one sentence that names the option */
export function readInputs(given: Readonly<Record<string, string | undefined>>): Inputs {
  const read = (name: string): number => {
    const option = options[name];
    if (option === undefined) throw new Error(`there is no option --${name}`);
    const { min, max, isWhole } = option;
    const text = given[name];
    const value = text === undefined ? option.default(read) : text.trim() === '' ? Number.NaN : Number(text);
    if (text === undefined && Number.isNaN(value)) throw new Error(`--${name} is missing: ${option.is}`);
    if (!(value >= min && value <= max) || (isWhole && Number.isFinite(value) && !Number.isInteger(value))) {
      const kind = isWhole ? 'a whole number' : 'a number';
      throw new Error(
        `--${name} must be ${kind} from ${min} to ${max}, not ${JSON.stringify(text ?? value)}`,
      );
    }
    return value;
  };
  const inputs = {
    requestsPerSecond: read('requests'),
    keys: read('keys'),
    activeKeys: read('active-keys'),
    skew: read('skew'),
    refusedShare: read('refused'),
    requestOctets: read('request-octets'),
    responseOctets: read('response-octets'),
    connections: read('connections'),
    targets: read('targets'),
    replicas: read('replicas'),
    zones: read('zones'),
    perKey: read('per-key'),
    headroom: read('headroom'),
    meanShare: read('mean'),
    directory: read('directory') === 1,
    keepDays: read('keep-days'),
    shardBytesMax: read('shard-memory') * gibibyte,
  };
  if (inputs.activeKeys > inputs.keys) throw new Error('--active-keys must not be more than --keys');
  return inputs;
}
