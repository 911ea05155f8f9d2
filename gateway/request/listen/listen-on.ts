import type { AddressInfo, Server } from 'node:net';

/** A socket that a supervisor has bound, as Node passes it to a worker. */
export type ListeningSocket = object;

export type ListenAt =
  | { readonly host: string; readonly port: number }
  | { readonly socket: ListeningSocket };

/**
 * Listens on an address or on a bound socket. Resolves with the address in use. Port 0 stands for any free port.
 *
 * @throws when the address cannot be listened on
 */
export function listenOn(server: Server, at: ListenAt): Promise<AddressInfo> {
  return new Promise((resolve, reject) => {
    server.once('error', reject);
    const onListening = () => {
      server.off('error', reject);
      resolve(server.address() as AddressInfo);
    };
    if ('socket' in at) server.listen(at.socket, onListening);
    else server.listen(at.port, at.host, onListening);
  });
}
