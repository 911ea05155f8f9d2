/**
 * Builds `dist/`, the part of the npm package that runs: `gateway/` with JavaScript in place of TypeScript. Node does not strip
 * types from files below `node_modules`. `npm pack --ignore-scripts=false` calls this file as
 * `prepack`, and removes `dist/` after it.
 *
 * Usage: node config/package/build.ts [FOLDER]
 */
import { cpSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { stripTypeScriptTypes } from 'node:module';
import { dirname, extname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

const root = fileURLToPath(new URL('../../', import.meta.url));
const target = process.argv[2] ?? join(root, 'dist');
/** What a running gateway reads, beside its TypeScript. The browser's files are served as they are. */
const copied = new Set(['.lua', '.yaml', '.js', '.css', '.svg', '.html']);
/** `npm start` needs the store, which is not in the package. */
const left = new Set(['gateway/cli/demo.ts', 'gateway/cli/bin.js']);
/** The path of another module of ours, as in `from './a.ts'` and `new URL('./a.ts', …)`. */
const modulePath = /(?<quote>['"])(?<path>\.{1,2}\/[^'"\n]*)\.ts\k<quote>/g;

rmSync(target, { recursive: true, force: true });
for (const entry of readdirSync(join(root, 'gateway'), { recursive: true, withFileTypes: true })) {
  if (!entry.isFile()) continue;
  const file = join(entry.parentPath, entry.name).slice(root.length);
  if (left.has(file)) continue;
  const to = join(target, file);
  if (extname(file) === '.ts' && !file.endsWith('.d.ts')) {
    const text = stripTypeScriptTypes(readFileSync(join(root, file), 'utf8'));
    mkdirSync(dirname(to), { recursive: true });
    writeFileSync(to.replace(/\.ts$/, '.js'), text.replaceAll(modulePath, '$<quote>$<path>.js$<quote>'));
  } else if (copied.has(extname(file))) {
    cpSync(join(root, file), to);
  }
}
const { version } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'));
writeFileSync(join(target, 'package.json'), `${JSON.stringify({ type: 'module', version })}\n`);
