import type * as Http from 'node:http';
import { createRequire } from 'node:module';

const require = createRequire(import.meta.url);

/**
 * An `import` of `node:http` reads all members of the module. Node then loads the code behind `WebSocket` and `fetch`: 14 MB, and 30 ms of
 * CPU time at the start. `require` reads no member.
 */
export const http: typeof Http = require('node:http');
