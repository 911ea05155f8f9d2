import { dirname } from 'node:path';
import type { Reporter, TestCase, TestModule } from 'vitest/node';

const slowestCount = 10;

/**
 * Prints a summary after a run: a line for each folder, the slowest files, and for each failed test the command that
 * runs it alone.
 */
export class SummaryReporter implements Reporter {
  onTestRunEnd(modules: readonly TestModule[]): void {
    const files = modules.map((module) => ({
      file: module.relativeModuleId,
      durationMs: module.diagnostic().collectDuration + module.diagnostic().duration,
      // A test is skipped if it belongs to the other run (everyday or full size), or if `-t` does not select it.
      tests: [...module.children.allTests()].filter((test) => test.result().state !== 'skipped'),
      isFailed: module.state() === 'failed',
    }));
    const ran = files.filter(({ tests, isFailed }) => tests.length > 0 || isFailed);
    const folders = [...Map.groupBy(ran, ({ file }) => folderOf(file))].toSorted(([a], [b]) =>
      a.localeCompare(b),
    );
    const byFolder = folders.map(([folder, inIt]) => {
      const tests = inIt.flatMap((file) => file.tests);
      return [
        folder,
        `${inIt.length}`,
        `${tests.length}`,
        `${tests.filter(isFailed).length || ''}`,
        seconds(inIt.reduce((sum, { durationMs }) => sum + durationMs, 0)),
      ];
    });
    print([['folder', 'files', 'tests', 'failed', 'seconds'], ...byFolder]);

    const slowest = files.toSorted((a, b) => b.durationMs - a.durationMs).slice(0, slowestCount);
    print([
      ['slowest files', 'seconds'],
      ...slowest.map(({ file, durationMs }) => [file, seconds(durationMs)]),
    ]);

    const commands = files.flatMap(({ file, tests, isFailed: isFileFailed }) => {
      const failed = tests.filter(isFailed);
      // A file can also fail before its first test.
      return failed.length === 0 && isFileFailed
        ? [commandOf(file)]
        : failed.map((test) => commandOf(file, test));
    });
    if (commands.length > 0) console.log(`\nTo run a failed test alone:\n  ${commands.join('\n  ')}`);
  }
}

function isFailed(test: TestCase): boolean {
  return test.result().state === 'failed';
}

/** The folder of a file, at most three levels deep. For a file below `test/request/limit`, the folder is `test/request/limit`. */
function folderOf(file: string): string {
  return dirname(file).split('/').slice(0, 3).join('/');
}

function commandOf(file: string, test?: TestCase): string {
  const command = `npx vitest run --config test/vitest.config.ts ${file}`;
  if (test === undefined) return command;
  const pattern = `^${test.fullName.replaceAll(' > ', ' ').replace(/[\\^$.*+?()[\]{}|]/g, '\\$&')}$`;
  return `${command} -t '${pattern.replaceAll("'", `'\\''`)}'`;
}

function seconds(ms: number): string {
  return (ms / 1_000).toFixed(1);
}

/** Prints a table with its first column aligned left and the other columns aligned right. */
function print(rows: readonly (readonly string[])[]): void {
  const widths = rows[0]?.map((_, column) => Math.max(...rows.map((row) => row[column]?.length ?? 0))) ?? [];
  const lines = rows.map((row) =>
    row
      .map((cell, column) =>
        column === 0 ? cell.padEnd(widths[0] ?? 0) : cell.padStart(widths[column] ?? 0),
      )
      .join('  '),
  );
  console.log(`\n${lines.join('\n')}`);
}
