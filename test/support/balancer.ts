import { once } from 'node:events';
import { type AddressInfo, connect, createServer, type Socket } from 'node:net';

export interface Member {
  readonly port: number;
  /** Where `/readyz` is served. */
  readonly adminUrl: string;
}

export interface Balancer {
  readonly origin: string;
  add(member: Member): void;
  remove(member: Member): void;
  close(): Promise<void>;
}

const pollIntervalMs = 100;

/**
 * A simple TCP balancer: a new connection goes to the next member whose last `/readyz` was 200, and stays there. It
 * retries nothing and inspects nothing.
 */
export async function startBalancer(): Promise<Balancer> {
  const members = new Map<Member, boolean>();
  const sockets = new Set<Socket>();
  let turn = 0;

  const server = createServer({ allowHalfOpen: true }, (client) => {
    const ready = [...members].filter(([, isReady]) => isReady).map(([member]) => member);
    const member = ready[turn++ % ready.length];
    if (member === undefined) {
      client.destroy();
      return;
    }
    const inner = connect({ port: member.port, host: '127.0.0.1', allowHalfOpen: true });
    join(client, inner);
    join(inner, client);
  });

  function join(from: Socket, to: Socket): void {
    sockets.add(from);
    from.setNoDelay(true);
    from.on('error', () => to.destroy());
    from.on('close', () => sockets.delete(from));
    from.pipe(to);
  }

  async function poll(): Promise<void> {
    await Promise.all([...members.keys()].map(ask));
  }

  async function ask(member: Member): Promise<void> {
    const isReady = await fetch(`${member.adminUrl}/readyz`).then(
      ({ status }) => status === 200,
      () => false,
    );
    if (members.has(member)) members.set(member, isReady);
  }

  const timer = setInterval(poll, pollIntervalMs);
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;

  return {
    origin: `http://127.0.0.1:${port}`,
    add: (member) => void members.set(member, true),
    remove: (member) => void members.delete(member),
    async close() {
      clearInterval(timer);
      server.close();
      for (const socket of sockets) socket.destroy();
      await once(server, 'close');
    },
  };
}
