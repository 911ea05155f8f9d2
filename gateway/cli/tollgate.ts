#!/usr/bin/env node
/** The command line as a process: what is written where, and with which exit code it ends. */
import { CommanderError } from 'commander';
import { printable } from '../shared/terminal/printable.ts';
import { createProgram } from './program.ts';

// A reader such as `head` closes the pipe when it has read enough.
process.stdout.on('error', (error: NodeJS.ErrnoException) => {
  if (error.code !== 'EPIPE') fail(`Standard output cannot be written: ${error.message}.`);
  process.exit();
});

try {
  await createProgram().parseAsync();
} catch (error) {
  // Commander has already printed the message of its error.
  if (error instanceof CommanderError) process.exitCode = error.exitCode;
  else fail(error instanceof Error ? error.message : String(error));
}

/** A message may repeat a line of a file, an argument or a response, so control characters are removed. */
function fail(message: string): void {
  console.error(printable(message));
  process.exitCode = 1;
}
