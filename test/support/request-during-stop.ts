import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import { once } from 'node:events';
import { Worker } from 'node:worker_threads';

/**
 * Sends a request to a listener of this process, and stops the process when it accepts the connection. The process continues when the
 * whole request is in the socket and `stoppedMs` have passed.
 *
 * @param request ends with a request that has `Connection: close`
 * @returns everything that the listener sends, or the client's error
 */
export async function requestDuringStop(port: number, request: string, stoppedMs: number): Promise<string> {
  const isWritten = new Int32Array(new SharedArrayBuffer(4));
  const stop = () => {
    unsubscribe('net.server.socket', stop);
    Atomics.wait(isWritten, 0, 0);
    Atomics.wait(isWritten, 0, 1, stoppedMs);
  };
  subscribe('net.server.socket', stop);
  const client = new Worker(clientScript, { eval: true, workerData: { port, request, isWritten } });
  const [received] = await once(client, 'message');
  return received as string;
}

/** The client runs in a thread of its own, so that it can send while the process is stopped. */
const clientScript = `
const { connect } = require('node:net');
const { parentPort, workerData } = require('node:worker_threads');
const { port, request, isWritten } = workerData;
let received = '';
const socket = connect(port, '127.0.0.1', () =>
  socket.write(request, () => {
    Atomics.store(isWritten, 0, 1);
    Atomics.notify(isWritten, 0);
  }),
);
socket.setEncoding('latin1');
socket.on('data', (text) => (received += text));
socket.on('error', (error) => parentPort.postMessage(String(error)));
socket.on('close', () => parentPort.postMessage(received));
`;
