import { createServer } from 'node:net';

/**
 * A sentence for a port of `npm start` that is not free. The processes that will listen do not know the names of the variables, so
 * `npm start` checks the ports itself.
 */
export function portProblem(name: string, value: string): Promise<string | undefined> {
  return new Promise((resolve) => {
    const server = createServer();
    server.once('error', ({ code, message }: NodeJS.ErrnoException) => {
      // This user may lack the permission for a port below 1024 that is free.
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
