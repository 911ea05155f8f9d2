import { spawn } from 'node:child_process';
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { makeCertificate } from '../support/make-certificate.ts';
import { treeCpuSeconds } from './measure-cpu.ts';
import { endProcess } from './processes.ts';
import type { BenchRedis } from './redis.ts';
import { hotKey, type NoteProblems, type Sample, takeSample, warmUp } from './scenarios.ts';
import { nginxLua } from './subjects/nginx-lua.ts';
import type { Stage, StartedSubject, Subject } from './subjects/subject.ts';
import { tollgate } from './subjects/tollgate.ts';

/** Measures the cost of TLS for a subject. */
export interface TlsFigures {
  readonly subject: string;
  /** The hot key on 64 persistent connections. */
  readonly kept: readonly Sample[];
  /** One connection with a full handshake for each request. */
  readonly fresh: readonly FreshSample[];
}

interface FreshSample {
  /** The CPU time of handshake, connection and request. */
  readonly cpuSecondsPer10k: number;
  readonly perSecond: number;
}

export interface TlsOptions {
  readonly stage: Stage;
  readonly redis: BenchRedis;
  readonly noteProblems: NoteProblems;
  readonly warmUpSeconds: number;
  readonly seconds: number;
  readonly rounds: number;
}

const loadTimeoutMs = 30_000;

/**
 * Starts the gateway and nginx again, both with TLS 1.3 and the same certificate (ECDSA, P-256), cipher suite and
 * curve.
 */
export async function measureTls(options: TlsOptions): Promise<TlsFigures[]> {
  const { rounds, warmUpSeconds, seconds } = options;
  const stage = stageOverTls(options.stage);
  const measured: { subject: Subject; started: StartedSubject; kept: Sample[]; fresh: FreshSample[] }[] = [];
  for (const subject of [tollgate, nginxLua]) {
    if (subject.missing() !== undefined) continue;
    measured.push({ subject, started: await subject.start(stage), kept: [], fresh: [] });
  }
  const loadOf = ({ subject, started }: (typeof measured)[number]) => ({
    ...options,
    scenario: hotKey,
    subject: started,
    credentials: stage.credentials,
    where: `tls, ${subject.name}`,
  });

  for (const each of measured) {
    console.log(`tls: warm-up: ${each.subject.name}`);
    await warmUp({ ...loadOf(each), seconds: warmUpSeconds });
    await takeFreshSample(each.started, { ...loadOf(each), seconds: warmUpSeconds });
  }
  for (let round = 0; round < rounds; round++) {
    console.log(`tls: round ${round + 1} of ${rounds}`);
    for (const each of round % 2 === 0 ? measured : measured.toReversed()) {
      each.kept.push(await takeSample({ ...loadOf(each), seconds }));
      each.fresh.push(await takeFreshSample(each.started, { ...loadOf(each), seconds }));
    }
  }
  for (const { started } of measured) await endProcess(started.pid);
  return measured.map(({ subject, kept, fresh }) => ({ subject: subject.name, kept, fresh }));
}

function stageOverTls(stage: Stage): Stage {
  const dir = join(stage.dir, 'tls');
  mkdirSync(dir);
  const tls = { cert: join(dir, 'tls.pem'), key: join(dir, 'tls.key') };
  const certificate = makeCertificate();
  writeFileSync(tls.cert, certificate.cert);
  writeFileSync(tls.key, certificate.key);
  return { ...stage, dir, tls };
}

interface FreshLoad {
  readonly credentials: Stage['credentials'];
  readonly seconds: number;
  readonly where: string;
  readonly noteProblems: NoteProblems;
}

async function takeFreshSample(
  { pid, origin }: StartedSubject,
  { credentials, seconds, where, noteProblems }: FreshLoad,
): Promise<FreshSample> {
  const before = treeCpuSeconds(pid).total;
  const load = await runHandshakes([new URL(origin).port, credentials.hotFile, String(seconds)]);
  const cpuSeconds = treeCpuSeconds(pid).total - before;
  if (load.failed > 0)
    noteProblems(where, [`${load.failed} connections failed, for example: ${load.example}`]);
  if (load.requests === 0) noteProblems(where, ['no connection was served']);
  return {
    cpuSecondsPer10k: (cpuSeconds / load.requests) * 10_000,
    perSecond: load.requests / load.seconds,
  };
}

interface HandshakeFigures {
  readonly requests: number;
  readonly failed: number;
  readonly example: string;
  readonly seconds: number;
}

/** Runs handshake-load.ts. @throws when it fails or does not end in time */
async function runHandshakes(args: readonly string[]): Promise<HandshakeFigures> {
  const program = fileURLToPath(new URL('handshake-load.ts', import.meta.url));
  const child = spawn(process.execPath, [program, ...args], {
    stdio: ['ignore', 'pipe', 'inherit'],
    timeout: loadTimeoutMs,
    killSignal: 'SIGKILL',
  });
  let output = '';
  child.stdout.on('data', (chunk) => {
    output += chunk;
  });
  const kill = () => child.kill('SIGKILL');
  process.once('exit', kill);
  try {
    await new Promise((resolve, reject) => child.once('close', resolve).once('error', reject));
  } finally {
    process.off('exit', kill);
  }
  if (output === '') throw new Error('handshake-load.ts printed no figures');
  return JSON.parse(output) as HandshakeFigures;
}
