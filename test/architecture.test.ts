import { readdirSync, readFileSync } from 'node:fs';
import { dirname, join, relative } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';

const root = fileURLToPath(new URL('..', import.meta.url));

/** Leaf files that any station may read. */
const nouns = [
  'model.ts',
  'errors.ts',
  'timeouts-and-sizes.ts',
  'address-group.ts',
  'event-loop-batch.ts',
  'redis-keys.ts',
  'secrets.ts',
  'shapes',
  'structures',
  'keys',
  'optional-whitespace.ts',
  'web-socket-protocols.ts',
  'terminal',
];

/** What each folder or file in gateway/ may import from outside its own folder. */
const allowed: Record<string, readonly string[]> = {
  config: [...nouns, 'tls'],
  // It creates the response objects, whose class is in `respond`.
  listen: [...nouns, 'respond', 'tls'],
  tls: nouns,
  identify: nouns,
  limit: [...nouns, 'redis'],
  directory: [...nouns, 'redis'],
  redis: nouns,
  match: nouns,
  forward: [...nouns, 'transport', 'tls'],
  transport: nouns,
  pages: nouns,
  respond: nouns,
  usage: [...nouns, 'redis'],
  // It replays the record of `usage` in the windows of `limit`.
  simulate: [...nouns, 'limit', 'usage'],
  fleet: [...nouns, 'redis'],
  // Its pages are files that are served as those of `pages` are, and its listener reads HTTP with the same parser.
  admin: [...nouns, 'tls', 'listen', 'directory', 'usage', 'simulate', 'limit', 'fleet', 'pages'],
  // The access line is made of what every station found.
  observe: [...nouns, 'exchange.ts'],
  // `diff` shows settings as the admin API does; `simulate` replays logs.
  cli: [...nouns, 'config', 'main.ts', 'admin', 'simulate', 'limit', 'usage'],
  'model.ts': [],
  'errors.ts': ['structures'],
  'timeouts-and-sizes.ts': [],
  'address-group.ts': [],
  'event-loop-batch.ts': [],
  'redis-keys.ts': [],
  'secrets.ts': [],
  shapes: ['model.ts'],
  // All keys of a configuration, packed.
  keys: ['model.ts', 'shapes'],
  structures: [],
  'optional-whitespace.ts': [],
  'web-socket-protocols.ts': ['optional-whitespace.ts'],
  terminal: [],
  'snapshot.ts': [...nouns, 'identify', 'directory', 'match', 'pages', 'respond', 'observe'],
  'exchange.ts': [...nouns, 'identify', 'listen', 'match', 'forward', 'respond', 'snapshot.ts'],
  'read-key.ts': ['address-group.ts', 'snapshot.ts', 'identify', 'directory'],
  'request-path.ts': [
    ...nouns,
    'snapshot.ts',
    'exchange.ts',
    'read-key.ts',
    'listen',
    'match',
    'identify',
    'directory',
    'limit',
    'pages',
    'forward',
    'respond',
    'usage',
  ],
  // What serves requests, what serves operators, and the stores behind both.
  sides: [
    ...nouns,
    // The thread that reads for operators is handed the settings.
    'config',
    'snapshot.ts',
    'exchange.ts',
    'request-path.ts',
    'read-key.ts',
    'listen',
    'match',
    'identify',
    'limit',
    'pages',
    'forward',
    'observe',
    'admin',
    'tls',
    'redis',
    'directory',
    'usage',
    'fleet',
  ],
  'gateway.ts': [...nouns, 'sides', 'limit', 'observe', 'admin'],
  // The same in several processes.
  workers: [...nouns, 'gateway.ts', 'sides', 'config', 'admin', 'fleet', 'limit', 'listen', 'observe'],
  'main.ts': [...nouns, 'gateway.ts', 'workers', 'config', 'observe'],
};

const files = sourceFiles('gateway').concat(sourceFiles('backend'));
const imports = files.flatMap((file) => importsOf(file).map((target) => ({ file, target })));

describe('the architecture', () => {
  it('imports go in one direction: stations do not import each other', () => {
    const wrong = imports.filter(({ file, target }) => {
      const [from, to] = [placeOf(file), placeOf(target)];
      return file.startsWith('gateway/') && from !== to && !(allowed[from] ?? []).includes(to);
    });
    expect(wrong).toEqual([]);
  });

  it('the gateway imports nothing of the store, nor the store of the gateway', () => {
    expect(imports.filter(({ file, target }) => file.split('/')[0] !== target.split('/')[0])).toEqual([]);
  });

  it('there are no circular imports', () => {
    const targetsOf = Map.groupBy(imports, ({ file }) => file);
    const circles: string[] = [];
    const visit = (file: string, trail: readonly string[]): void => {
      if (trail.includes(file)) circles.push([...trail, file].join(' → '));
      else for (const { target } of targetsOf.get(file) ?? []) visit(target, [...trail, file]);
    };
    for (const file of files) visit(file, []);
    expect(circles).toEqual([]);
  });

  it('every file is imported by a process or a command, if indirectly', () => {
    const entries = ['gateway/main.ts', 'gateway/cli/tollgate.ts', 'gateway/cli/demo.ts', 'backend/main.ts'];
    const reached = new Set(entries);
    for (const file of reached) {
      for (const { target } of imports.filter((one) => one.file === file)) reached.add(target);
    }
    expect(files.filter((file) => !reached.has(file))).toEqual([]);
  });

  it('no file has ten lines or fewer, and no folder more than fifteen files', () => {
    const tiny = files.filter((file) => file.startsWith('gateway/') && linesOf(file) <= 10);
    const perFolder = Map.groupBy(files, (file) => dirname(file));
    const crowded = [...perFolder].filter(([, inIt]) => inIt.length > 15).map(([folder]) => folder);
    expect({ tiny, crowded }).toEqual({ tiny: [], crowded: [] });
  });

  it('only respond/ writes heads of responses to clients', () => {
    const writesHeads =
      /\.(?:writeHead|setHeaders?|appendHeader|writeEarlyHints|writeProcessing)\(|[`'"]HTTP\/1\.1 /;
    const elsewhere = ['gateway/respond/', 'gateway/admin/'];
    // They write the heads of requests and handshakes to targets.
    const writersToTargets = [
      'gateway/transport/target-connection.ts',
      'gateway/forward/upgrade/forward-upgrade.ts',
    ];
    const writers = files.filter((file) => {
      if (!file.startsWith('gateway/') || elsewhere.some((folder) => file.startsWith(folder))) return false;
      return !writersToTargets.includes(file) && writesHeads.test(readFileSync(join(root, file), 'utf8'));
    });
    expect(writers).toEqual([]);
  });

  it('parts get their bounds as arguments: only files that start or document something import the defaults', () => {
    const starting = [
      'gateway/cli/admin/commands.ts',
      'gateway/cli/admin/gateway-options.ts',
      'gateway/cli/check-upstream-names.ts',
      'gateway/cli/keys/key-file-commands.ts',
      'gateway/cli/keys/with-lock.ts',
      'gateway/cli/what-if/commands.ts',
      'gateway/gateway.ts',
      'gateway/main.ts',
    ];
    // They use the default timeouts of an upstream.
    const documenting = ['gateway/config/check-upstreams.ts', 'gateway/config/schema/settings-schema.ts'];
    const takers = files.filter((file) =>
      /import \{[^}]*\bdefaultBounds\b[^}]*\} from/.test(readFileSync(join(root, file), 'utf8')),
    );
    expect(takers.toSorted()).toEqual([...starting, ...documenting].toSorted());
  });

  it('only the entry points use `process`', () => {
    const entryPoints = ['gateway/main.ts', 'gateway/workers/worker-main.ts', 'backend/main.ts'];
    const touching = files.filter(
      (file) =>
        !entryPoints.includes(file) &&
        !file.startsWith('gateway/cli/') &&
        /(?<![\w.])process\.[a-z]/.test(readFileSync(join(root, file), 'utf8')),
    );
    expect(touching).toEqual([]);
  });
});

function sourceFiles(folder: string): string[] {
  return readdirSync(join(root, folder), { recursive: true, encoding: 'utf8' })
    .filter((name) => name.endsWith('.ts'))
    .map((name) => join(folder, name));
}

function linesOf(file: string): number {
  return readFileSync(join(root, file), 'utf8').trimEnd().split('\n').length;
}

/** The files that a file imports, or starts as threads or processes. */
function importsOf(file: string): string[] {
  const text = readFileSync(join(root, file), 'utf8');
  const relativeName = /(?:from|import|(?:new Worker|fork)\(new URL)\s*\(?\s*'(\.{1,2}\/[^']+)'/g;
  return [...text.matchAll(relativeName)].map(([, target = '']) =>
    relative(root, join(root, dirname(file), target)),
  );
}

/** The folder in gateway/ that a file is in, or the file itself when it is directly in gateway/. */
function placeOf(file: string): string {
  return file.split('/')[1] ?? '';
}
