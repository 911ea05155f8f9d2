import { readFileSync } from 'node:fs';

/** What a peer is told: `{ port, backendPort, redisPort, limits: [[sha256, perMinute], …], accessLog }`. */
export const options = JSON.parse(readFileSync(process.argv[2], 'utf8'));
