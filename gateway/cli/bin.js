#!/usr/bin/env node
// The command of the package. A clone has TypeScript, which Node runs as it is. The npm package has JavaScript in `dist/`, because Node
// strips no types below `node_modules`.
import { existsSync } from 'node:fs';

const source = new URL('./tollgate.ts', import.meta.url);
await import(
  (existsSync(source) ? source : new URL('../../dist/gateway/cli/tollgate.js', import.meta.url)).href
);
