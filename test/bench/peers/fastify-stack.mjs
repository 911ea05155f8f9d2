// A gateway that consists of Fastify's own plugins. This gateway finds keys by digest. It counts only the requests of a minute in Redis,
// because the plugin supports only one window. It sends the plugin's headers, writes one access line, and forwards with undici.
import { hash } from 'node:crypto';
import bearerAuth from '@fastify/bearer-auth';
import httpProxy from '@fastify/http-proxy';
import rateLimit from '@fastify/rate-limit';
import fastify from 'fastify';
import { Redis } from 'ioredis';
import { pino } from 'pino';
import { options } from './options.mjs';

const limits = new Map(options.limits);
const log = pino(pino.destination({ dest: options.accessLog, sync: false, minLength: 4096 }));

const app = fastify({ disableRequestLogging: true });
app.decorateRequest('digest', '');

await app.register(bearerAuth, {
  auth: (secret, request) => {
    request.digest = hash('sha256', secret, 'hex');
    return limits.has(request.digest);
  },
});
await app.register(rateLimit, {
  redis: new Redis(options.redisPort, '127.0.0.1', { enableAutoPipelining: true }),
  nameSpace: 'fastify:',
  timeWindow: 60_000,
  keyGenerator: (request) => request.digest,
  max: (_request, digest) => limits.get(digest),
});
await app.register(httpProxy, {
  prefix: '/v1',
  rewritePrefix: '/v1',
  upstream: `http://127.0.0.1:${options.backendPort}`,
  undici: { connections: 256 },
  replyOptions: {
    rewriteRequestHeaders: (_request, { authorization, ...headers }) => headers,
  },
});
app.addHook('onResponse', async (request, reply) => {
  log.info({
    requestId: request.id,
    method: request.method,
    path: request.url,
    status: reply.statusCode,
    totalMs: reply.elapsedTime,
  });
});
await app.listen({ port: options.port, host: '127.0.0.1' });
