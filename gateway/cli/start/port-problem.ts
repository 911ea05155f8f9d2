import { createServer } from 'node:net';

/**
 * Returns an error message if this process cannot listen on the port. `npm start` checks the ports itself, because error messages of the
 * gateway and the backend do not name the variables that set the ports.
 */
export function portProblem(name: string, value: string): Promise<string | undefined> {
  return new Promise((resolve) => {
    const server = createServer();
    server.once('error', ({ code, message }: NodeJS.ErrnoException) => {
      // A free port below 1024 may need a permission that this user does not have.
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
