import { terminalOf } from '../../shared/terminal/terminal.ts';
import { figure } from '../../shared/words/figures.js';

export interface Progress {
  /** @param of the number of all keys; undefined if it is not known */
  show(done: number, of?: number): void;
  end(): void;
}

const shownAfterMs = 1_000;
const barColumns = 30;

/** Shows how many keys are done. The bar appears only at a terminal, after the first second. */
export function createProgress(stream: NodeJS.WriteStream, env: NodeJS.ProcessEnv): Progress {
  const isLive = terminalOf(stream, env)?.rewrites === true;
  const startedMs = performance.now();
  let isShown = false;
  return {
    show(done, of) {
      if (!isLive || performance.now() - startedMs < shownAfterMs) return;
      isShown = true;
      if (of === undefined) return void stream.write(`\r${figure(done)} keys\u001b[K`);
      const filled = of === 0 ? barColumns : Math.round((barColumns * Math.min(done, of)) / of);
      const bar = `${'█'.repeat(filled)}${'░'.repeat(barColumns - filled)}`;
      stream.write(`\r${bar} ${figure(done)} of ${figure(of)} keys\u001b[K`);
    },
    end() {
      if (isShown) stream.write('\r\u001b[K');
    },
  };
}

export function progressHere(): Progress {
  return createProgress(process.stderr, process.env);
}
