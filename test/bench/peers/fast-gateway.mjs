import gateway from 'fast-gateway';
import { options } from './options.mjs';

gateway({
  routes: [
    {
      prefix: '/v1',
      prefixRewrite: '/v1',
      target: `http://127.0.0.1:${options.backendPort}`,
    },
  ],
}).start(options.port, '127.0.0.1');
