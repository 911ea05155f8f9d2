/**
 * Reads the options of a command with the function `read`. Prints the usage and ends the process after `--help`, or when `read` throws an
 * Error, whose message is also printed.
 */
export function readOptionsOrEnd<T>(usage: string, read: () => T): T {
  if (process.argv.includes('--help')) {
    console.log(usage);
    process.exit(0);
  }
  try {
    return read();
  } catch (error) {
    console.error(`${error instanceof Error ? error.message : error}\n${usage}`);
    process.exit(2);
  }
}
