#!/usr/bin/env node
/** Runs the command line as a process. This file writes errors to standard error, and sets the exit code. */
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

/** Control characters are removed, because a message may repeat a line of a file, an argument or a response. */
function fail(message: string): void {
  console.error(printable(message));
  process.exitCode = 1;
}
