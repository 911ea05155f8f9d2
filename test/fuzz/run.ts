import { parseArgs } from 'node:util';
import { readOptionsOrEnd } from '../support/command-options.ts';
import { describeFinding } from './describe-finding.ts';
import { fuzz } from './fuzz.ts';

/**
 * Linux with connection tracking keeps a closed connection in its table for two minutes (`nf_conntrack_max`, usually 262,144 entries). When
 * this table is full, Linux drops new connections, and the gateway seems to hang.
 */
const connectionsMax = '200000';

const usage = `npm run fuzz -- [--seed N] [--count N] [--seconds N]
  --seed N      the seed of the random choices (default: from the clock)
  --count N     the largest number of connections (default ${connectionsMax})
  --seconds N   the longest duration (default 60)`;

interface Options {
  readonly seed: number;
  readonly count: number;
  readonly seconds: number;
}

/** @throws Error that names the wrong option */
function readOptions(): Options {
  const { values } = parseArgs({
    options: {
      seed: { type: 'string', default: String(Date.now() % 2 ** 31) },
      count: { type: 'string', default: connectionsMax },
      seconds: { type: 'string', default: '60' },
    },
  });
  const read = (name: keyof Options): number => {
    if (!/^\d{1,15}$/.test(values[name])) throw new Error(`--${name}: a whole number`);
    return Number(values[name]);
  };
  return { seed: read('seed'), count: read('count'), seconds: read('seconds') };
}

/** Prints the seed. When the run finds a fault, it prints the shrunk connection and exits with 1. */
async function main({ seed, count, seconds }: Options): Promise<void> {
  console.log(`fuzz: seed ${seed}, at most ${count} connections and ${seconds} s`);
  const { connections, responsesByStatus, admitted, finding } = await fuzz({ seed, count, seconds });
  const responses = [...responsesByStatus].sort(([a], [b]) => a - b).map(([status, n]) => `${n} × ${status}`);
  console.log(
    `fuzz: ${connections} connections, ${admitted} requests admitted, responses: ${responses.join(', ')}`,
  );
  if (finding !== undefined) {
    console.error(describeFinding(finding));
    process.exitCode = 1;
  }
}

await main(readOptionsOrEnd(usage, readOptions));
