import { openRawClient, type RawClient } from './raw-http.ts';

/** A backend's response to a WebSocket handshake that it accepts. */
export const switchingProtocols =
  'HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n';

/** An API document with a WebSocket at `/feed` and one other operation. */
export const webSocketApi = {
  openapi: '3.1.0',
  info: { title: 'Test', version: '1.0.0' },
  paths: {
    '/feed': {
      get: {
        operationId: 'feed',
        'x-upgrade': 'websocket',
        responses: { 200: { description: 'It went well.' } },
      },
    },
    '/news': {
      get: { operationId: 'news', responses: { 200: { description: 'It went well.' } } },
    },
  },
};

/** Sends a WebSocket handshake. */
export async function askForWebSocket(port: number, secret: string): Promise<RawClient> {
  const client = await openRawClient(port);
  const fields = ['Upgrade: websocket', 'Sec-WebSocket-Version: 13', 'Sec-WebSocket-Key: dGVzdA=='];
  const credentials = `Authorization: Bearer ${secret}`;
  client.send(
    ['GET /v1/feed HTTP/1.1', 'Host: a', 'Connection: Upgrade', ...fields, credentials, '', ''].join('\r\n'),
  );
  return client;
}
