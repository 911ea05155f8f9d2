#!/usr/bin/env node
// The command of the npm package. In a clone, the command runs the TypeScript files, because Node supports TypeScript outside of
// node_modules. In the npm package, the command runs the JavaScript files in dist/, because Node does not run TypeScript files below
// node_modules.
import { existsSync } from 'node:fs';

const source = new URL('./tollgate.ts', import.meta.url);
await import(
  (existsSync(source) ? source : new URL('../../dist/gateway/cli/tollgate.js', import.meta.url)).href
);
