import dns from 'node:dns/promises';
import net, { type AddressInfo, isIP } from 'node:net';
import { getSystemErrorMessage, getSystemErrorName } from 'node:util';
import type { ListeningSocket } from '../../request/listen/listen-on.ts';

export interface BoundSockets {
  readonly address: AddressInfo;
  /** The bound sockets. A worker receives each socket and accepts its connections. */
  readonly sockets: readonly ListeningSocket[];
  /** Closes this process's sockets. The kernel frees a socket only after its worker has also closed it. */
  close(): void;
}

/**
 * Binds several sockets to one address with SO_REUSEPORT. The kernel spreads connections among the sockets.
 *
 * With SO_REUSEPORT, a second gateway of the same user could also bind the address and receive some of the connections. The address is
 * therefore first bound without SO_REUSEPORT. This first bind fails when another process listens on the address.
 *
 * @throws when the address cannot be bound
 */
export async function bindSockets(
  { host, port }: { readonly host: string; readonly port: number },
  count: number,
): Promise<BoundSockets> {
  const address = isIP(host) === 0 ? (await dns.lookup(host)).address : host;
  const free = bind(address, port, 0);
  const { port: inUse } = addressOf(free);
  free.close();
  if (port !== 0 && inUse !== port) throw listenError('EADDRINUSE', 'address already in use', host, port);

  const sockets: Socket[] = [];
  while (sockets.length < count) sockets.push(bind(address, inUse, reusePort));
  const [first] = sockets;
  if (first === undefined) throw new Error('no socket was requested');
  return {
    address: addressOf(first),
    sockets,
    close() {
      for (const socket of sockets) socket.close();
    },
  };
}

/** UV_TCP_REUSEPORT of libuv. */
const reusePort = 2;

/** Node's internal TCP socket below `net.Server`. */
interface Socket {
  /** Writes the bound address into `address`. */
  getsockname(address: object): number;
  close(): void;
}

/**
 * Binds a socket without accepting connections. Node documents no API for this, so the function uses the internal API that `node:cluster`
 * uses. If a Node version lacks this API, no worker starts, and tests fail.
 */
function bind(address: string, port: number, flags: number): Socket {
  const { _createServerHandle: create } = net as unknown as {
    _createServerHandle(
      address: string,
      port: number,
      family: number,
      fd: undefined,
      flags: number,
    ): Socket | number;
  };
  const socket = create(address, port, isIP(address), undefined, flags);
  if (typeof socket !== 'number') return socket;
  throw listenError(getSystemErrorName(socket), getSystemErrorMessage(socket) ?? 'it failed', address, port);
}

/** Returns the address of a socket. If the requested port is in use, `bind` does not fail, and the socket has another port. */
function addressOf(socket: Socket): AddressInfo {
  const address = {};
  socket.getsockname(address);
  return address as AddressInfo;
}

/** An error with the members that `net.Server` sets. */
function listenError(code: string, text: string, host: string, port: number): Error {
  return Object.assign(new Error(`listen ${code}: ${text} ${host}:${port}`), { code, port });
}
