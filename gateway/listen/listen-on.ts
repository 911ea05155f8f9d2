import type { AddressInfo, Server } from 'node:net';

/**
 * Listens on an address. Resolves with the address in use: port 0 stands for any free one.
 *
 * @throws when the address cannot be listened on
 */
export function listenOn(
  server: Server,
  { host, port }: { readonly host: string; readonly port: number },
): Promise<AddressInfo> {
  return new Promise((resolve, reject) => {
    server.once('error', reject);
    server.listen(port, host, () => {
      server.off('error', reject);
      resolve(server.address() as AddressInfo);
    });
  });
}
