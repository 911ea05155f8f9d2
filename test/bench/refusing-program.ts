import { createServer } from 'node:http';

/**
 * A program that refuses every request with 401, as cheaply as node:http can. A flood to this program shows what the flood itself costs the
 * machine. The first argument is the port.
 */
const body = Buffer.from(
  JSON.stringify({ code: 'invalid_key', message: 'The API key is not valid.', status: 401 }),
);
const fields = ['Content-Type', 'application/json', 'Content-Length', String(body.length)];

const server = createServer((req, res) => {
  req.resume();
  res.writeHead(401, fields);
  res.end(body);
});
server.keepAliveTimeout = 0;
server.listen(Number(process.argv[2]), '127.0.0.1');
