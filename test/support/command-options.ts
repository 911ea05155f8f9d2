/**
 * What `read` makes of the options of a command. Ends the process with the usage where `--help` is among them, and where
 * `read` throws an Error, which says what is wrong.
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
