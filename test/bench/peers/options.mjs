import { readFileSync } from 'node:fs';

/** The configuration of a peer: `{ port, backendPort, redisPort, limits: [[sha256, perMinute], …], accessLog }`. */
export const options = JSON.parse(readFileSync(process.argv[2], 'utf8'));
