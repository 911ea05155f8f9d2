import { spawn } from 'node:child_process';
import { fileURLToPath } from 'node:url';

/** The time that wrk may take in addition to the duration of the load. wrk needs it for connections, the last responses and the summary. */
const graceMs = 15_000;

export interface Load {
  readonly url: string;
  readonly method: 'GET' | 'POST';
  readonly body: string;
  /** The file with one secret per line. Each request takes the next secret. */
  readonly secretsFile: string;
  readonly connections: number;
  readonly seconds: number;
  readonly expectedStatus: number;
  /** `check` verifies the status of every response, which makes wrk slower. */
  readonly mode: 'check' | 'measure';
  /** The average pause in ms of each connection between a response and its next request; absent: no pause. */
  readonly pauseMs?: number;
  /** The number of client addresses that the requests claim in turn (X-Forwarded-For); absent: none. */
  readonly addresses?: number;
}

/** The figures of wrk. The percentiles come from wrk's histogram, which is corrected for coordinated omission. */
export interface WrkFigures {
  readonly requests: number;
  readonly seconds: number;
  readonly p50Us: number;
  readonly p99Us: number;
  readonly p999Us: number;
  readonly maxUs: number;
  readonly socketErrors: number;
  readonly timeouts: number;
  /** Responses with a status above 399. */
  readonly above399: number;
  /** The number of responses with an unexpected status, and one of these statuses. In the mode `measure`, both numbers are 0. */
  readonly unexpected: number;
  readonly example: number;
}

/** Runs wrk on one thread. @throws when it fails or does not end in time */
export async function runWrk(load: Load): Promise<WrkFigures> {
  const script = fileURLToPath(new URL('wrk.lua', import.meta.url));
  const options = ['-t1', `-c${load.connections}`, `-d${load.seconds}s`, '--timeout', '10s', '-s', script];
  const scriptArgs = [load.method, load.secretsFile, load.body, String(load.expectedStatus), load.mode];
  scriptArgs.push(String(load.pauseMs ?? 0), String(load.addresses ?? 0));
  const wrk = spawn('wrk', [...options, load.url, '--', ...scriptArgs], {
    stdio: ['ignore', 'pipe', 'pipe'],
    timeout: load.seconds * 1000 + graceMs,
    killSignal: 'SIGKILL',
  });
  let output = '';
  wrk.stdout.on('data', (chunk) => {
    output += chunk;
  });
  wrk.stderr.on('data', (chunk) => {
    output += chunk;
  });
  const kill = () => wrk.kill('SIGKILL');
  process.once('exit', kill);
  try {
    await new Promise((resolve, reject) => wrk.once('close', resolve).once('error', reject));
  } finally {
    process.off('exit', kill);
  }
  return parseWrkOutput(output);
}

/** wrk.lua prints the figures as one line of JSON, after wrk's own summary. */
export function parseWrkOutput(output: string): WrkFigures {
  const line = output.split('\n').find((candidate) => candidate.startsWith('{"requests":'));
  if (line === undefined) throw new Error(`wrk printed no figures:\n${output}`);
  return JSON.parse(line) as WrkFigures;
}

/** The reasons why a run is invalid, one sentence each. `admissionsMax` is the largest permitted number of admitted requests in a flood. */
export function problemsOf(
  figures: WrkFigures,
  { expectedStatus, mode }: Pick<Load, 'expectedStatus' | 'mode'>,
  admissionsMax: number,
): string[] {
  const problems: string[] = [];
  if (figures.requests === 0) problems.push('no request was answered');
  if (figures.socketErrors > 0) problems.push(`${figures.socketErrors} socket errors`);
  if (figures.timeouts > 0) problems.push(`${figures.timeouts} requests timed out`);
  const unexpected =
    mode === 'check'
      ? figures.unexpected
      : expectedStatus < 400
        ? figures.above399
        : figures.requests - figures.above399;
  if (unexpected > admissionsMax) {
    const example = figures.example > 0 ? `, for example ${figures.example}` : '';
    problems.push(`${unexpected} of ${figures.requests} responses were not ${expectedStatus}${example}`);
  }
  return problems;
}
