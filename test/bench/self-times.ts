/** The fields of a V8 CPU profile that this module reads, with times in µs. */
export interface CpuProfile {
  readonly nodes: readonly {
    readonly id: number;
    readonly callFrame: { readonly functionName: string; readonly url: string; readonly lineNumber: number };
  }[];
  readonly samples: readonly number[];
  readonly timeDeltas: readonly number[];
}

export interface SelfTime {
  readonly place: string;
  /** The share of time in which the process was not idle, from 0 to 1. */
  readonly share: number;
}

/** The time spent in each file and function, without idle time, longest first. */
export function selfTimes({ nodes, samples, timeDeltas }: CpuProfile): {
  readonly byFile: SelfTime[];
  readonly byFunction: SelfTime[];
} {
  const frames = new Map(nodes.map(({ id, callFrame }) => [id, callFrame]));
  const files = new Map<string, number>();
  const functions = new Map<string, number>();
  let total = 0;
  for (const [index, id] of samples.entries()) {
    const frame = frames.get(id);
    if (frame === undefined || frame.functionName === '(idle)') continue;
    const us = timeDeltas[index] ?? 0;
    const file = frame.url === '' ? frame.functionName : shortFile(frame.url);
    const place = `${file}:${frame.lineNumber + 1} ${frame.functionName || '(anonymous)'}`;
    total += us;
    files.set(file, (files.get(file) ?? 0) + us);
    functions.set(place, (functions.get(place) ?? 0) + us);
  }
  return { byFile: sharesOf(files, total), byFunction: sharesOf(functions, total) };
}

function shortFile(url: string): string {
  return url.replace(/^.*\/node_modules\//, '').replace(/^file:\/\/.*\/gateway\//, 'gateway/');
}

function sharesOf(times: ReadonlyMap<string, number>, total: number): SelfTime[] {
  return [...times]
    .map(([place, us]) => ({ place, share: us / total }))
    .toSorted((a, b) => b.share - a.share);
}
