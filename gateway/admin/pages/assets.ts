import { readdirSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { findPackageJSON } from 'node:module';
import { dirname, extname, join, sep } from 'node:path';
import { fileURLToPath } from 'node:url';

/** A file that the pages load. */
interface Asset {
  /** Below `/assets/`. */
  readonly name: string;
  readonly type: string;
  readonly read: () => Promise<Buffer>;
}

const types: Readonly<Record<string, string>> = {
  '.js': 'text/javascript; charset=utf-8',
  '.css': 'text/css; charset=utf-8',
  '.svg': 'image/svg+xml',
};

/** The modules that the pages import from node_modules: the package, the path in the package, and a line to add, by import name. */
const packages = {
  preact: ['preact', 'dist/preact.mjs'],
  'preact/hooks': ['preact', 'hooks/dist/hooks.mjs'],
  htm: ['htm', 'dist/htm.module.js'],
  // The only minified file of the package is a script, which has half the size of the module.
  uplot: ['uplot', 'dist/uPlot.iife.min.js', '\nexport default uPlot;\n'],
} as const;

/**
 * The folders whose files are served, so a new page needs no entry here. Each file has its path below `gateway/`, so that
 * relative imports mean the same in the browser and in the gateway. The folder `browser/` of a capability has a page of the
 * capability's own listener path, and not a part of the operators' pages.
 */
const folders = ['admin/pages/browser/', 'admin/words/', 'shared/words/', 'capabilities/'];
const gateway = fileURLToPath(new URL('../../', import.meta.url));
const own = folders.flatMap((folder) =>
  readdirSync(join(gateway, folder), { recursive: true, encoding: 'utf8' })
    .filter((name) => types[extname(name)] !== undefined)
    .filter((name) => !(folder === 'capabilities/' && name.split(sep).includes('browser')))
    .map((name) => `${folder}${name}`)
    .sort(),
);

const vendored = Object.entries(packages).map(([specifier, [packageName, path, end]]) => ({
  specifier,
  name: `${specifier.replace('/', '-')}.js`,
  file: inPackage(packageName, path),
  end,
}));

export const assets: readonly Asset[] = [
  ...own.map((name) => assetOf(name, join(gateway, name))),
  ...vendored.map(({ name, file, end }) => assetOf(name, file, end)),
  assetOf('uplot.css', inPackage('uplot', 'dist/uPlot.min.css')),
];

export const importMap = {
  imports: Object.fromEntries(vendored.map(({ specifier, name }) => [specifier, assetPath(name)])),
};

/**
 * The modules that the HTML document preloads. Without preloading, the browser would find each module only after
 * loading the module that imports it.
 */
export const modules = assets
  .map(({ name }) => name)
  .filter((name) => extname(name) === '.js' && !name.endsWith('/before-paint.js'));

export function assetPath(name: string): string {
  return `/assets/${name}`;
}

/** The path of a file in `browser/`. */
export function pagePath(name: string): string {
  return assetPath(`admin/pages/browser/${name}`);
}

function assetOf(name: string, file: string, end = ''): Asset {
  return {
    name,
    type: types[extname(name)] ?? '',
    // The listener serves no source maps, so the reference to the map is removed.
    read: async () =>
      Buffer.from(`${(await readFile(file, 'utf8')).replace(/\n\/\/# sourceMappingURL=.*/, '')}${end}`),
  };
}

function inPackage(name: string, path: string): string {
  const description = findPackageJSON(name, import.meta.url);
  if (description === undefined) throw new Error(`the package ${name} is not installed: run "npm ci"`);
  return join(dirname(description), path);
}
