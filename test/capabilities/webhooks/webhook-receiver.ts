import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { text } from 'node:stream/consumers';
import { Webhook } from 'standardwebhooks';

export interface ReceivedEvent {
  readonly id: string;
  readonly type: string;
  readonly timestamp: string;
  // biome-ignore lint/suspicious/noExplicitAny: tests assert what is in it
  readonly data: any;
}

export interface WebhookReceiver {
  readonly url: string;
  /** The deliveries in their order, also repeated deliveries. The library of the standard has verified each delivery. */
  readonly received: ReceivedEvent[];
  /** Deliveries with a wrong signature, with the reason. */
  readonly refused: unknown[];
  /** The bodies as sent. */
  readonly bodies: string[];
  /** The status of the next responses. */
  status: number;
  close(): Promise<void>;
}

/** Starts a service that receives webhooks on a loopback port. @param secret `whsec_…` */
export async function startWebhookReceiver(secret: string): Promise<WebhookReceiver> {
  const webhook = new Webhook(secret);
  const received: ReceivedEvent[] = [];
  const refused: unknown[] = [];
  const bodies: string[] = [];
  const server = createServer(async (request, response) => {
    const body = await text(request);
    bodies.push(body);
    try {
      const event = webhook.verify(body, request.headers as Record<string, string>) as Omit<
        ReceivedEvent,
        'id'
      >;
      received.push({ id: String(request.headers['webhook-id']), ...event });
    } catch (error) {
      refused.push(error);
    }
    response.writeHead(receiver.status).end();
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  const receiver: WebhookReceiver = {
    url: `http://127.0.0.1:${port}/hook/a-token-in-the-path`,
    received,
    refused,
    bodies,
    status: 204,
    async close() {
      server.closeAllConnections();
      server.close();
    },
  };
  return receiver;
}
