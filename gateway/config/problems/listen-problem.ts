import type { Settings } from '../../shared/model.ts';

/** A sentence about an address on which the gateway cannot listen, with the setting and a remedy. */
export function listenProblem(error: unknown, { listen, admin }: Pick<Settings, 'listen' | 'admin'>): string {
  const { code, message, port }: NodeJS.ErrnoException & { port?: number } =
    error instanceof Error ? error : new Error(String(error));
  // The admin listener opens before the public listener.
  const setting = port === admin.port ? 'admin' : 'listen';
  const { host } = setting === 'admin' ? admin : listen;
  switch (code) {
    case 'EADDRINUSE':
      return `\`${setting}.port\` ${port} is in use on ${host}: another program listens there, or this gateway runs already. End that one, or write another port.`;
    case 'EACCES':
      return `\`${setting}.port\` ${port} is not open to this user: ports below 1024 need a privilege. Write another port.`;
    case 'EADDRNOTAVAIL':
      return `\`${setting}.host\` ${host} is no address of this machine. Write an address of this machine, or 0.0.0.0 for all.`;
    default:
      return `The gateway cannot start: ${message}`;
  }
}
