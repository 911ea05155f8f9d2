import { once } from 'node:events';
import { type AddressInfo, connect, createServer, type Socket } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';

/**
 * A TCP relay to a server on this machine. A test can delay or throttle the relay, cut its connections, or switch it to another server.
 */
export interface TcpRelay {
  readonly port: number;
  /** From now on, delays all bytes except the bytes to and from a Redis replica. The bytes still arrive completely and in order. */
  delay(each: { toServerMs: number; toClientMs: number }): void;
  /** Sets the rate of each connection in each direction; the initial rate is Infinity. */
  throttle(bytesPerMs: number): void;
  /** Sends later connections to the server on this port. */
  switchTo(serverPort: number): void;
  /** Destroys the open connections. */
  cut(): void;
  stop(): Promise<void>;
}

export async function startTcpRelay(serverPort: number): Promise<TcpRelay> {
  const sockets = new Set<Socket>();
  let targetPort = serverPort;
  let toServerMs = 0;
  let toClientMs = 0;
  let bytesPerMs = Number.POSITIVE_INFINITY;

  const relay = createServer((client) => {
    const server = connect({ port: targetPort, host: '127.0.0.1' });
    let isReplica = false;
    client.on('data', (bytes) => {
      isReplica ||= bytes.includes('PSYNC');
    });
    carry(client, server, () => (isReplica ? 0 : toServerMs));
    carry(server, client, () => (isReplica ? 0 : toClientMs));
  });
  relay.listen(0, '127.0.0.1');
  await once(relay, 'listening');
  const { port } = relay.address() as AddressInfo;

  return {
    port,
    delay(each) {
      ({ toServerMs, toClientMs } = each);
    },
    throttle(most) {
      bytesPerMs = most;
    },
    switchTo(elsewhere) {
      targetPort = elsewhere;
    },
    cut,
    async stop() {
      relay.close();
      cut();
      await once(relay, 'close');
    },
  };

  function carry(from: Socket, to: Socket, delayMs: () => number): void {
    let wireFreeAtMs = 0;
    let delivered = Promise.resolve();
    sockets.add(from);
    from.setNoDelay(true);
    from.on('data', (bytes) => {
      const nowMs = performance.now();
      wireFreeAtMs = Math.max(nowMs, wireFreeAtMs) + bytes.length / bytesPerMs;
      const arrivesMs = wireFreeAtMs + delayMs();
      if (arrivesMs > nowMs)
        delivered = delivered.then(() => sleep(Math.max(1, arrivesMs - performance.now())));
      delivered = delivered.then(() => void to.write(bytes));
    });
    from.on('end', () => {
      delivered = delivered.then(() => void to.end());
    });
    from.on('error', () => {});
    from.on('close', (hadError) => {
      sockets.delete(from);
      if (hadError) to.destroy();
    });
  }

  function cut(): void {
    for (const socket of sockets) socket.destroy();
  }
}
