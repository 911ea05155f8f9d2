import { createServer } from 'node:http';

/**
 * The backend of the benchmark. The backend answers every complete request with 120 bytes of JSON, as cheaply as
 * node:http can. The first argument is the port.
 */
const body = Buffer.from(JSON.stringify([{ id: 1, name: 'x'.repeat(69), categoryId: 7, status: 'sold' }]));
const fields = ['Content-Type', 'application/json', 'Content-Length', String(body.length)];

const server = createServer((req, res) => {
  req.resume();
  req.once('end', () => {
    res.writeHead(200, fields);
    res.end(body);
  });
});
server.keepAliveTimeout = 0;
server.listen(Number(process.argv[2]), '127.0.0.1');
