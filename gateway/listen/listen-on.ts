import type { AddressInfo, Server } from 'node:net';

/**
 * Listens on an address and tells which one it became, since port 0 means any free one.
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
