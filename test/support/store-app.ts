import { once } from 'node:events';
import { connect } from 'node:net';
import { pino } from 'pino';
import { expect, onTestFinished } from 'vitest';
import { createApp } from '../../backend/app.ts';
import { createPetStore, type PetStore } from '../../backend/pets.ts';

export interface StoreApp {
  /** The URL `http://127.0.0.1:port`, without a path. */
  readonly url: string;
  readonly port: number;
  /** Every line that the store has logged. */
  readonly logLines: readonly string[];
  /** Posts a body, which is JSON by default. */
  post(body: string | Uint8Array<ArrayBuffer>, headers?: Record<string, string>): Promise<Response>;
}

/** Starts a store in the process of the test, on a free port. */
export async function startStoreApp(pets: PetStore = createPetStore({ petsMax: 10_000 })): Promise<StoreApp> {
  const logLines: string[] = [];
  const logger = pino({}, { write: (line: string) => void logLines.push(line) });
  const app = createApp({ pets, logger });
  onTestFinished(() => app.close());
  const url = await app.listen({ port: 0, host: '127.0.0.1' });
  return {
    url,
    port: Number(new URL(url).port),
    logLines,
    post: (body, headers = { 'content-type': 'application/json' }) =>
      fetch(`${url}/v1/pets`, { method: 'POST', body, headers }),
  };
}

/** Asserts an Error body with this status and code. @returns its message */
export async function expectError(response: Response, status: number, code: string): Promise<string> {
  const text = await response.text();
  expect(response.status, text).toBe(status);
  expect(response.headers.get('content-type')).toMatch(/^application\/json/);
  const body = JSON.parse(text);
  expect(body).toEqual({ code, message: expect.any(String), status });
  return body.message;
}

/** Sends bytes on a new connection. @returns all bytes received until the store closes the connection */
export async function sendRaw(port: number, bytes: string): Promise<string> {
  const socket = connect(port, '127.0.0.1');
  let response = '';
  socket.on('data', (chunk) => {
    response += chunk;
  });
  socket.write(bytes);
  await once(socket, 'close');
  return response;
}
