#!/usr/bin/env node
/** The command line as a process: what is written where, and with which exit code it ends. */
import { CommanderError } from 'commander';
import { printable } from '../shared/terminal/printable.ts';
import { createProgram } from './program.ts';

// With a closed pipe whoever reads it has read enough, as `head` does.
process.stdout.on('error', (error: NodeJS.ErrnoException) => {
  if (error.code !== 'EPIPE') fail(`Standard output cannot be written: ${error.message}.`);
  process.exit();
});

try {
  await createProgram().parseAsync();
} catch (error) {
  // What a CommanderError says is written already.
  if (error instanceof CommanderError) process.exitCode = error.exitCode;
  else fail(error instanceof Error ? error.message : String(error));
}

/** A message may repeat what somebody else wrote: the line of a file, an argument, what a gateway said. */
function fail(message: string): void {
  console.error(printable(message));
  process.exitCode = 1;
}
