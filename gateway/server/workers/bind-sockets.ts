import dns from 'node:dns/promises';
import net, { type AddressInfo, isIP } from 'node:net';
import { getSystemErrorMessage, getSystemErrorName } from 'node:util';
import type { ListeningSocket } from '../../request/listen/listen-on.ts';

export interface BoundSockets {
  readonly address: AddressInfo;
  /** As many as were asked for. They accept nothing here: a worker that gets one does. */
  readonly sockets: readonly ListeningSocket[];
  /** They are gone when the workers have closed theirs. */
  close(): void;
}

/**
 * Binds several sockets to one address, with SO_REUSEPORT: the kernel spreads connections among them.
 *
 * That option also lets a second gateway of the same user bind the address, and take a part of its connections. So the
 * address is bound without it first, which fails where anybody listens.
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
  if (first === undefined) throw new Error('no socket was asked for');
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

/** A TCP socket as Node has it below `net.Server`. */
interface Socket {
  /** Fills in where it is bound. */
  getsockname(address: object): number;
  close(): void;
}

/**
 * There is no documented way to bind a socket and not to accept from it. This one is what `node:cluster` uses. In a Node
 * without it no worker would start, and tests would fail.
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

/** With a port that is taken, the system has said nothing yet, and another port is bound. */
function addressOf(socket: Socket): AddressInfo {
  const address = {};
  socket.getsockname(address);
  return address as AddressInfo;
}

/** As `net.Server` says it. */
function listenError(code: string, text: string, host: string, port: number): Error {
  return Object.assign(new Error(`listen ${code}: ${text} ${host}:${port}`), { code, port });
}
