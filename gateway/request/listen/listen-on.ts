import type { AddressInfo, Server } from 'node:net';

/** A listening socket of the supervisor, in the form that Node sends to a worker process. */
export type ListeningSocket = object;

export type ListenAt =
  | { readonly host: string; readonly port: number }
  | { readonly socket: ListeningSocket };

/**
 * Listens on an address or on a bound socket. Resolves with the actual address. Port 0 selects any free port.
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
