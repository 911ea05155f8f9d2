/**
 * Reads the options of a command with the function `read`. With `--help`, the process prints the usage and exits. When `read` throws an
 * Error, the process prints the Error's message and the usage, and exits.
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
