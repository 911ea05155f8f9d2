// The lowest possible cost: node:http as the server, undici's `Pool.dispatch` as the client, and nothing in between.
import { createServer } from 'node:http';
import { createRequire } from 'node:module';
import { options } from './options.mjs';

// The file imports undici from the packages of this repository's tests, because the peers' packages have an older version.
const { Pool } = createRequire(new URL('../../../package.json', import.meta.url))('undici');

const pool = new Pool(`http://127.0.0.1:${options.backendPort}`, { connections: 256 });

createServer((req, res) => {
  const hasBody =
    req.headers['content-length'] !== undefined || req.headers['transfer-encoding'] !== undefined;
  pool.dispatch(
    { method: req.method, path: req.url, headers: forwardable(req.rawHeaders), body: hasBody ? req : null },
    {
      onRequestStart(controller) {
        const clientGone = () => {
          if (!res.writableFinished) controller.abort(new Error('the client is gone'));
        };
        if (res.destroyed) clientGone();
        else res.once('close', clientGone);
      },
      onResponseStart(_controller, statusCode, headers) {
        delete headers.connection;
        delete headers['keep-alive'];
        res.writeHead(statusCode, headers);
      },
      onResponseData(controller, chunk) {
        if (!res.write(chunk)) {
          controller.pause();
          res.once('drain', () => controller.resume());
        }
      },
      onResponseEnd() {
        res.end();
      },
      onResponseError() {
        if (res.headersSent) res.destroy();
        else res.writeHead(502).end();
      },
    },
  );
}).listen(options.port, '127.0.0.1');

/** Returns the header fields (Node's flat list of name, value, …) without hop-by-hop fields. */
function forwardable(rawHeaders) {
  const headers = [];
  for (let i = 0; i < rawHeaders.length; i += 2) {
    const name = rawHeaders[i].toLowerCase();
    if (name !== 'connection' && name !== 'keep-alive') headers.push(rawHeaders[i], rawHeaders[i + 1]);
  }
  return headers;
}
