/**
 * Builds `dist/` for the npm package: a copy of `gateway/` with JavaScript in place of TypeScript. Node does not run TypeScript
 * files below `node_modules`. `npm pack --ignore-scripts=false` runs this file as the `prepack` script, and the `postpack` script
 * removes `dist/`.
 *
 * Usage: node config/package/build.ts [FOLDER]
 */
import { cpSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createRequire, stripTypeScriptTypes } from 'node:module';
import { dirname, extname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { build } from 'rolldown';

const root = fileURLToPath(new URL('../../', import.meta.url));
const target = process.argv[2] ?? join(root, 'dist');
/** File types that the gateway reads at run time. Files of these types are copied without a change. */
const copied = new Set(['.lua', '.yaml', '.js', '.css', '.svg', '.html']);
/** The package omits `demo.ts`, because `demo.ts` needs the pet store, which is not in the package. */
const left = new Set(['gateway/cli/start/demo.ts', 'gateway/cli/bin.js']);
/** Matches the relative path of a TypeScript module, as in `from './a.ts'` and `new URL('./a.ts', …)`. */
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
    const script = text
      .replaceAll(modulePath, '$<quote>$<path>.js$<quote>')
      .replaceAll(" from 'zod';", " from '#zod';");
    writeFileSync(to.replace(/\.ts$/, '.js'), script);
  } else if (copied.has(extname(file))) {
    cpSync(join(root, file), to);
  }
}
/** The files of the API reference, with their licences. The package that contains them would add 12 MB and an install script. */
const referenceFiles = [
  'swagger-ui-bundle.js',
  'swagger-ui-bundle.js.LICENSE.txt',
  'swagger-ui.css',
  'LICENSE',
  'NOTICE',
];
const reference = dirname(createRequire(import.meta.url).resolve('swagger-ui-dist/package.json'));
for (const name of referenceFiles) cpSync(join(reference, name), join(target, 'swagger-ui', name));
/**
 * Zod as one file, with its licence. Node loads 97 files of the original package, most of them messages in other languages, which take 45 ms
 * of CPU time in each command.
 */
const zod = dirname(createRequire(import.meta.url).resolve('zod/package.json'));
await build({ input: join(zod, 'index.js'), output: { file: join(target, 'zod/zod.js') }, logLevel: 'warn' });
cpSync(join(zod, 'LICENSE'), join(target, 'zod/LICENSE'));
const { version } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'));
const imports = { '#swagger-ui/*': './swagger-ui/*', '#zod': './zod/zod.js' };
writeFileSync(join(target, 'package.json'), `${JSON.stringify({ type: 'module', version, imports })}\n`);
