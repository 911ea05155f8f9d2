import { Agent, createServer } from 'node:http';
import { createProxyServer } from 'http-proxy-3';
import { options } from './options.mjs';

const proxy = createProxyServer({
  target: `http://127.0.0.1:${options.backendPort}`,
  agent: new Agent({ keepAlive: true, maxSockets: 256 }),
});
proxy.on('error', (_error, _req, res) => res.writeHead(502).end());

createServer((req, res) => proxy.web(req, res)).listen(options.port, '127.0.0.1');
