import { parseArgs } from 'node:util';
import { describeFinding } from './describe-finding.ts';
import { fuzz } from './fuzz.ts';

/**
 * Where Linux tracks connections, a closed one stays in the table for two minutes (`nf_conntrack_max`, usually 262,144
 * entries). When the table is full, new connections are dropped, which looks like a gateway that hangs.
 */
const connectionsMax = '200000';

/** `npm run fuzz -- --seed N --count N --seconds N`: prints the seed; on a finding prints it shrunk and exits 1. */
async function main(): Promise<void> {
  const { values } = parseArgs({
    options: {
      seed: { type: 'string', default: String(Date.now() % 2 ** 31) },
      count: { type: 'string', default: connectionsMax },
      seconds: { type: 'string', default: '60' },
    },
  });
  const [seed, count, seconds] = [values.seed, values.count, values.seconds].map(wholeNumber);
  if (seed === undefined || count === undefined || seconds === undefined) {
    console.error('usage: npm run fuzz -- [--seed N] [--count N] [--seconds N]');
    process.exitCode = 2;
    return;
  }
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

function wholeNumber(text: string): number | undefined {
  return /^\d{1,15}$/.test(text) ? Number(text) : undefined;
}

await main();
