/** A collector in a process of its own, which takes everything and decodes nothing. `hang` never responds. */
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';

const hangs = process.argv[2] === 'hang';
let bytes = 0;
const server = createServer((request, response) => {
  request.on('data', (chunk) => {
    bytes += chunk.length;
  });
  request.on('end', () => {
    if (!hangs) response.end('{}');
  });
});
server.listen(0, '127.0.0.1', () => process.send?.({ port: (server.address() as AddressInfo).port }));
process.on('message', () => process.send?.({ bytes }));
process.once('disconnect', () => process.exit(0));
