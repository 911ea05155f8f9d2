import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { dirname, join, relative } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';
import { deprecationShapes, planShapes, settingsShapes } from '../gateway/capabilities/lists/schemas.ts';
import { needs } from './deletion/needs.ts';

const root = fileURLToPath(new URL('..', import.meta.url));

/** The layers of gateway/. Each layer may import only the layers above it in this list. */
const layers = [
  'shared',
  'redis',
  'quota',
  'keys',
  'usage',
  'fleet',
  'config',
  'request',
  'observe',
  'admin',
  'server',
  'main.ts',
  'cli',
];

/**
 * The folders of gateway/request/ with the steps of a request, each with the folders that it may import.
 * Files directly in request/ and in request/path/ connect these folders.
 */
const stations: Record<string, readonly string[]> = {
  route: [],
  authenticate: [],
  limit: [],
  respond: [],
  pages: [],
  transport: [],
  forward: ['transport'],
  // The listener creates the response objects, whose class is in `respond`.
  listen: ['respond'],
};

const levels = new Map<string, number>();

const files = sourceFiles('gateway').concat(sourceFiles('backend'));
const imports = files.flatMap((file) => importsOf(file).map((target) => ({ file, target })));

describe('the architecture', () => {
  it('a layer of gateway/ imports only the layers that gateway/README.md lists below it', () => {
    const wrong = imports.filter(
      ({ file, target }) =>
        file.startsWith('gateway/') && !isOfCapabilities(file) && levelOf(target) > levelOf(file),
    );
    expect(wrong).toEqual([]);
    const found = readdirSync(join(root, 'gateway')).filter((name) => name !== 'README.md');
    expect(found.toSorted()).toEqual([...layers, 'capabilities'].toSorted());
  });

  it('only lists name a capability, apart from its own folder and the capabilities that need it', () => {
    const wrong = imports.filter(({ file, target }) => {
      const [from, to] = [capabilityOf(file), capabilityOf(target)];
      if (to === undefined || from === to || file.startsWith('gateway/capabilities/lists/')) return false;
      return from === undefined || !needs[from]?.includes(to);
    });
    expect(wrong).toEqual([]);
  });

  it('no test names a capability, apart from the tests of this capability', () => {
    const tests = sourceFiles('test', ['node_modules', 'bench/node_modules']);
    const wrong = tests.flatMap((file) => {
      const [, room, own] = file.split('/');
      if (room === 'deletion') return [];
      return importsOf(file)
        .map((target) => ({ file, target, to: capabilityOf(target) ?? testedCapability(target) }))
        .filter(({ to }) => to !== undefined && !(room === 'capabilities' && mayKnow(file, own, to)));
    });
    expect(wrong).toEqual([]);
  });

  it('no test states a setting of a capability, apart from the tests of capabilities', () => {
    const names = Object.keys({ ...settingsShapes, ...planShapes, ...deprecationShapes });
    const states = names.map((name) => new RegExp(`(?<![\\w./])${name}['"]?:`));
    expect(names.filter((name) => !states.some((one) => one.test(`{ ${name}: {} }`)))).toEqual([]);
    const wrong = sourceFiles('test', ['node_modules', 'bench/node_modules'])
      .filter((file) => !['capabilities', 'deletion'].includes(file.split('/')[1] ?? ''))
      .filter((file) => {
        const text = readFileSync(join(root, file), 'utf8');
        return states.some((one) => one.test(text));
      });
    expect(wrong).toEqual([]);
  });

  it('there are at most seven lists of capabilities', () => {
    const lists = files.filter((file) => file.startsWith('gateway/capabilities/lists/'));
    expect(lists.length).toBeLessThanOrEqual(7);
  });

  it('the top level of the repository has these entries and no other', () => {
    const ofGit = ['.git', 'node_modules', 'coverage', 'dist', '.env', 'tollgate.yaml'];
    const found = readdirSync(root).filter((name) => !ofGit.includes(name) && !name.endsWith('.log'));
    const folders = ['.ci', 'backend', 'config', 'gateway', 'test'];
    const pages = ['CHANGELOG.md', 'LICENSE', 'README.md'];
    const tools = ['.dockerignore', '.gitignore', '.npmrc', 'Dockerfile', 'biome.json', 'docker-compose.yml'];
    const packages = ['package-lock.json', 'package.json', 'tsconfig.json'];
    expect(found.toSorted()).toEqual([...folders, ...pages, ...tools, ...packages].toSorted());
  });

  it('the steps of a request do not import each other', () => {
    const wrong = imports.filter(({ file, target }) => {
      const [from, to] = [stationOf(file), stationOf(target)];
      if (from === undefined || from === to) return false;
      return target.startsWith('gateway/request/') && !stations[from]?.includes(to ?? '');
    });
    expect(wrong).toEqual([]);
  });

  it('the gateway imports no file of the store, and the store no file of the gateway', () => {
    expect(imports.filter(({ file, target }) => file.split('/')[0] !== target.split('/')[0])).toEqual([]);
  });

  it('there are no circular imports', () => {
    const targetsOf = Map.groupBy(imports, ({ file }) => file);
    const circles: string[] = [];
    // Each file is visited once, because the number of paths between files grows much faster than the number of files.
    const visited = new Set<string>();
    const visit = (file: string, trail: readonly string[]): void => {
      if (trail.includes(file)) circles.push([...trail, file].join(' → '));
      if (visited.has(file)) return;
      visited.add(file);
      for (const { target } of targetsOf.get(file) ?? []) visit(target, [...trail, file]);
    };
    for (const file of files) visit(file, []);
    expect(circles).toEqual([]);
  });

  it('every file is imported by a process or a command, directly or indirectly', () => {
    const entries = [
      'gateway/main.ts',
      'gateway/cli/tollgate.ts',
      'gateway/cli/start/demo.ts',
      'backend/main.ts',
    ];
    const loadedByBrowsers = [
      'gateway/admin/pages/browser/main.js',
      'gateway/admin/pages/browser/before-paint.js',
      ...files.filter((file) => /^gateway\/capabilities\/[^/]+\/browser\//.test(file)),
      'gateway/request/pages/browser/page.js',
      'gateway/request/pages/browser/theme.js',
    ];
    const reached = new Set([...entries, 'gateway/cli/bin.js', ...loadedByBrowsers]);
    for (const file of reached) {
      for (const { target } of imports.filter((one) => one.file === file)) reached.add(target);
    }
    expect(files.filter((file) => !reached.has(file))).toEqual([]);
  });

  it('the command line is declared without code that a command runs: no schema, and of the packages only commander', () => {
    const loaded = new Set(['gateway/cli/program.ts']);
    const packages = new Set<string>();
    for (const file of loaded) {
      for (const name of importedAtOnce(file)) {
        if (name.startsWith('.')) loaded.add(join(dirname(file), name));
        else if (!name.startsWith('node:')) packages.add(name);
      }
    }
    expect([...packages]).toEqual(['commander']);
    // Each loaded file takes about 2 ms of CPU time in a clone, so a declaration imports only the words of its options.
    const words =
      /^gateway\/(?:shared\/|cli\/|keys\/limits\/limit-fields\.ts|capabilities\/[\w-]+\/(?:commands\.ts|event-names\.js|words\.js)$)/;
    expect([...loaded].filter((file) => !words.test(file))).toEqual([]);
  });

  it('no file has ten lines or fewer, and no folder below gateway/ more than fourteen entries, where a chapter in Lua and TypeScript is one', () => {
    const tiny = files.filter(
      (file) =>
        file.startsWith('gateway/') &&
        !file.startsWith('gateway/capabilities/lists/') &&
        file.endsWith('.ts') &&
        linesOf(file) <= 10,
    );
    const folders = new Set(files.filter((file) => file.startsWith('gateway/')).map((file) => dirname(file)));
    folders.delete('gateway');
    // The files that a browser loads are in one folder.
    const crowded = [...folders].filter(
      (folder) => !folder.endsWith('/browser') && entriesOf(folder).size > 14,
    );
    expect({ tiny, crowded }).toEqual({ tiny: [], crowded: [] });
  });

  it('only respond/ writes heads of responses to clients', () => {
    const writesHeads =
      /\.(?:writeHead|setHeaders?|appendHeader|writeEarlyHints|writeProcessing)\(|[`'"]HTTP\/1\.1 /;
    const elsewhere = ['gateway/request/respond/', 'gateway/admin/'];
    // Only these files write the heads of requests and handshakes to targets.
    const writersToTargets = [
      'gateway/request/transport/target-connection.ts',
      'gateway/request/forward/upgrade/forward-upgrade.ts',
    ];
    const writers = files.filter((file) => {
      if (!file.startsWith('gateway/') || elsewhere.some((folder) => file.startsWith(folder))) return false;
      return !writersToTargets.includes(file) && writesHeads.test(readFileSync(join(root, file), 'utf8'));
    });
    expect(writers).toEqual([]);
  });

  it('only files that start or document a part import the default bounds, and all others get bounds as arguments', () => {
    const starting = [
      'gateway/cli/admin/find-gateway.ts',
      'gateway/cli/admin/read/ids-in-directory.ts',
      'gateway/cli/start/check.ts',
      'gateway/cli/keys/file/with-lock.ts',
      'gateway/cli/keys/transfer/move-keys.ts',
      'gateway/cli/keys/whoami.ts',
      'gateway/cli/request/why.ts',
      'gateway/cli/start/init.ts',
      'gateway/cli/top/show-top.ts',
      'gateway/main.ts',
      'gateway/server/gateway.ts',
    ];
    // Only these files use the default timeouts of an upstream.
    const documenting = [
      'gateway/config/check/check-upstreams.ts',
      'gateway/config/schema/settings-schema.ts',
    ];
    const takers = files.filter((file) =>
      /import \{[^}]*\bdefaultBounds\b[^}]*\} from/.test(readFileSync(join(root, file), 'utf8')),
    );
    expect(takers.filter((file) => !isCommand(file)).toSorted()).toEqual(
      [...starting, ...documenting].toSorted(),
    );
  });

  it('only the entry points use `process`', () => {
    const entryPoints = ['gateway/main.ts', 'gateway/server/workers/worker-main.ts', 'backend/main.ts'];
    const touching = files.filter(
      (file) =>
        !entryPoints.includes(file) &&
        !file.startsWith('gateway/cli/') &&
        !isCommand(file) &&
        !file.startsWith('gateway/admin/pages/browser/') &&
        /(?<![\w.])process\.[a-z]/.test(readFileSync(join(root, file), 'utf8')),
    );
    expect(touching).toEqual([]);
  });
});

it('every npm script that runs a file has this file', () => {
  const { scripts } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'));
  const missing = Object.values<string>(scripts).filter((script) => {
    const file = /\bnode (\S+\.ts)/.exec(script)?.[1];
    return file !== undefined && !existsSync(join(root, file));
  });
  expect(missing).toEqual([]);
});

describe('the tests of full size', () => {
  it('have an everyday test in their file, or name the file that has one', () => {
    const wrong = readdirSync(join(root, 'test'), { recursive: true, encoding: 'utf8' }).filter((name) => {
      if (!name.endsWith('.test.ts')) return false;
      const text = readFileSync(join(root, 'test', name), 'utf8');
      const isWhole = / @module-tag full$/m.test(text);
      const always = text.match(/\btags: 'full'/g) ?? [];
      const tests = text.match(/^\s*(?:it|test)(?:\.each|\.for)?[(<]/gm) ?? [];
      if (!isWhole && (always.length < tests.length || tests.length === 0)) return false;
      const named = /^(?:\/\*| )\* In `npm test`: `(test\/[^`]+)`/m.exec(text)?.[1];
      return named === undefined || !existsSync(join(root, named));
    });
    expect(wrong).toEqual([]);
  });
});

/** All files except the type declarations of packages, which no file imports. */
function sourceFiles(folder: string, without: readonly string[] = []): string[] {
  return readdirSync(join(root, folder), { recursive: true, encoding: 'utf8' })
    .filter((name) => /\.[jt]s$/.test(name) && !name.endsWith('.d.ts'))
    .filter((name) => !without.some((folder) => name.startsWith(`${folder}/`)))
    .map((name) => join(folder, name));
}

/** The entries of a folder, without the extensions of files in Lua and TypeScript. */
function entriesOf(folder: string): Set<string> {
  return new Set(readdirSync(join(root, folder)).map((name) => name.replace(/\.(?:lua|ts)$/, '')));
}

function linesOf(file: string): number {
  return readFileSync(join(root, file), 'utf8').trimEnd().split('\n').length;
}

/** The files that a file imports, in a comment of JavaScript too, or starts as a thread or process. */
function importsOf(file: string): string[] {
  const text = readFileSync(join(root, file), 'utf8');
  const relativeName = /(?:from|import|(?:new Worker|fork)\(new URL)\s*\(?\s*'(\.{1,2}\/[^']+)'/g;
  return [...text.matchAll(relativeName)].map(([, target = '']) =>
    relative(root, join(root, dirname(file), target)),
  );
}

/** The files and packages that are loaded together with a file: its imports, without types and without `await import`. */
function importedAtOnce(file: string): string[] {
  const text = readFileSync(join(root, file), 'utf8');
  const statement = /^(?:import|export) (?!type )(?:(?<names>[^'";]*?) from )?'(?<name>[^']+)';/gm;
  return [...text.matchAll(statement)].flatMap(({ groups }) => {
    const areTypes = /^\{(?:\s*type \w+,?)+\s*\}$/.test(groups?.names ?? '');
    return areTypes ? [] : [groups?.name ?? ''];
  });
}

/** The folder in gateway/request/ that contains a file; undefined for a file elsewhere. */
function stationOf(file: string): string | undefined {
  const [, room, station, ...rest] = file.split('/');
  return room === 'request' && rest.length > 0 && station !== 'path' ? station : undefined;
}

/** Whether a file has commands of a capability. */
function isCommand(file: string): boolean {
  return /^gateway\/capabilities\/[^/]+\/commands[./]/.test(file);
}

function isOfCapabilities(file: string): boolean {
  return file.startsWith('gateway/capabilities/');
}

/** The name of the capability in whose folder a file is; undefined for any other file. */
function capabilityOf(file: string): string | undefined {
  const [, , name = ''] = isOfCapabilities(file) ? file.split('/') : [];
  return ['', 'interfaces', 'lists', 'README.md'].includes(name) ? undefined : name;
}

/** Whether the tests of a capability may know another one: the capabilities that it needs, and the one of a folder `with-NAME`. */
function mayKnow(file: string, own = '', other = ''): boolean {
  return own === other || needs[own]?.includes(other) === true || file.includes(`/with-${other}/`);
}

/** The name of the capability whose tests contain a file; undefined for any other file. */
function testedCapability(file: string): string | undefined {
  return /^test\/capabilities\/([^/]+)\//.exec(file)?.[1];
}

/** The place of a file's layer in `layers`. The layer of a file of capabilities is the highest layer that it imports. */
function levelOf(file: string): number {
  if (!isOfCapabilities(file)) return layers.indexOf(file.split('/')[1] ?? '');
  const known = levels.get(file);
  if (known !== undefined) return known;
  const targets = imports.filter((one) => one.file === file).map(({ target }) => target);
  const level = Math.max(0, ...targets.map(levelOf));
  levels.set(file, level);
  return level;
}
