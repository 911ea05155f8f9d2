import { once } from 'node:events';
import { type AddressInfo, connect, createServer, type Socket } from 'node:net';
import { fetchOnce } from './fetch-once.ts';

interface Member {
  readonly port: number;
  /** The admin listener of the member, with `/readyz`. */
  readonly adminUrl: string;
}

export interface Balancer {
  readonly origin: string;
  add(member: Member): void;
  remove(member: Member): void;
  close(): Promise<void>;
}

/**
 * A simple TCP load balancer. Each new connection goes to the next member whose `/readyz` responds with 200. The balancer never moves an
 * open connection to another member. The balancer does not retry or inspect requests. The balancer requests `/readyz` before each
 * connection, because an earlier response is outdated after a pause of the process.
 */
export async function startBalancer(): Promise<Balancer> {
  const members = new Set<Member>();
  const sockets = new Set<Socket>();
  let turn = 0;

  const server = createServer({ allowHalfOpen: true }, async (client) => {
    hold(client);
    const member = await nextReady();
    if (member === undefined) {
      client.destroy();
      return;
    }
    const inner = connect({ port: member.port, host: '127.0.0.1', allowHalfOpen: true });
    hold(inner);
    join(client, inner);
    join(inner, client);
  });

  function hold(socket: Socket): void {
    sockets.add(socket);
    socket.setNoDelay(true);
    socket.on('error', () => {});
    socket.on('close', () => sockets.delete(socket));
  }

  async function nextReady(): Promise<Member | undefined> {
    const inTurn = [...members];
    inTurn.push(...inTurn.splice(0, turn++ % Math.max(1, inTurn.length)));
    for (const member of inTurn) if (await isReady(member)) return member;
    return undefined;
  }

  function isReady({ adminUrl }: Member): Promise<boolean> {
    return fetchOnce(`${adminUrl}/readyz`).then(
      ({ status }) => status === 200,
      () => false,
    );
  }

  function join(from: Socket, to: Socket): void {
    from.on('error', () => to.destroy());
    from.pipe(to);
  }

  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;

  return {
    origin: `http://127.0.0.1:${port}`,
    add: (member) => void members.add(member),
    remove: (member) => void members.delete(member),
    async close() {
      server.close();
      for (const socket of sockets) socket.destroy();
      await once(server, 'close');
    },
  };
}
