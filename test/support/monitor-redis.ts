import { connect } from 'node:net';
import { createInterface } from 'node:readline';

/**
 * Calls `onCommand` for every later command of Redis. The arguments of a command are escaped as in Redis's own output. The client's own
 * `monitor()` is unsuitable, because it fails when the reply to MONITOR and another client's command arrive in one packet.
 */
export async function monitorRedis(
  port: number,
  onCommand: (args: string[]) => void,
): Promise<{ stop(): void }> {
  const socket = connect(port, '127.0.0.1');
  socket.write('MONITOR\r\n');
  const { promise: monitors, resolve, reject } = Promise.withResolvers<void>();
  socket.once('error', reject);
  let isReply = true;
  createInterface({ input: socket }).on('line', (line) => {
    if (isReply) {
      isReply = false;
      if (line === '+OK') resolve();
      else reject(new Error(`MONITOR was answered ${line}`));
      return;
    }
    // A line has the time, database and address, and then each argument in quotes.
    onCommand(Array.from(line.matchAll(/"((?:[^"\\]|\\.)*)"/g), ([, argument = '']) => argument));
  });
  await monitors;
  return { stop: () => socket.destroy() };
}
