import { createServer } from 'node:net';

/**
 * One sentence when a port of `npm start` cannot be listened on. It is written here, since the processes that will listen do
 * not know the names of the variables.
 */
export function portProblem(name: string, value: string): Promise<string | undefined> {
  return new Promise((resolve) => {
    const server = createServer();
    server.once('error', ({ code, message }: NodeJS.ErrnoException) => {
      // A port below 1024 may be refused to this user although nobody has it.
      const problem = code === 'EADDRINUSE' ? 'is in use' : `cannot be listened on (${message})`;
      resolve(`${name} ${value} ${problem}: set ${name} to another port.`);
    });
    try {
      server.listen(Number(value), '127.0.0.1', () => server.close(() => resolve(undefined)));
    } catch {
      resolve(`${name} is "${value}": it must be a port, a number from 1 to 65535.`);
    }
  });
}
