import { execFileSync } from 'node:child_process';
import { existsSync, globSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, it, onTestFinished } from 'vitest';
import { changeList, withKey } from '../../gateway/admin/words/changes.js';
import { listCsv, timelineCsv } from '../../gateway/admin/words/csv.js';
import type { List } from '../../gateway/admin/words/list.js';
import { sayAt } from '../../gateway/cli/output/list.ts';

const root = fileURLToPath(new URL('../../', import.meta.url));
const words = globSync(['gateway/**/words/*.js', 'gateway/capabilities/**/{event-names,words}.js'], {
  cwd: root,
});

const lists = (
  await Promise.all(
    words.map(async (file) =>
      Object.entries<List<never, never>>(await import(join(root, file)))
        .filter(([, value]) => typeof value === 'object' && 'onTerminal' in value)
        .map(([name, list]) => ({ name, list })),
    ),
  )
).flat();

describe('the words', () => {
  it('import only words, so that a browser can load them', () => {
    const imported = words.flatMap((file) =>
      [...readFileSync(join(root, file), 'utf8').matchAll(/^import .* from '([^']+)';$/gms)].map(
        ([, specifier = '']) => specifier,
      ),
    );
    expect(
      imported.filter(
        (specifier) =>
          !/^(?:\.\/|(?:\.\.\/)+(?:\w+\/)?words\/)[\w-]+\.js$/.test(specifier) &&
          !/\/(?:event-names|words)\.js$/.test(specifier),
      ),
    ).toEqual([]);
    expect(imported.length).toBeGreaterThan(0);
  });

  it('have no TypeScript file of the same name, which the build would write over', () => {
    const scripts = globSync('gateway/**/*.js', { cwd: root });
    expect(scripts.filter((file) => existsSync(join(root, file.replace(/\.js$/, '.ts'))))).toEqual([]);
  });

  it.each(lists)('$name: every named column exists, and every column is shown somewhere', ({ list }) => {
    const { columns, onTerminal, onPage, inCsv = [] } = list;
    const named = [...onTerminal, ...onPage, ...inCsv];
    expect([...new Set(named)].sort()).toEqual(Object.keys(columns).sort());
    for (const names of [onTerminal, onPage, inCsv]) expect(new Set(names).size).toBe(names.length);
  });

  it('give CSV raw values, and no spreadsheet reads a text as a formula', () => {
    const list = {
      columns: {
        name: { title: 'Name', value: ({ name }: { name: string }) => name },
        used: { title: 'Used', kind: 'count' as const, value: () => 1_234_567 },
        debt: { title: 'Debt', kind: 'count' as const, value: () => -5 },
        last: { title: 'Last', kind: 'ago' as const, value: () => 0 },
        next: { title: 'Next', kind: 'until' as const, value: () => undefined, missing: '–' },
      },
      inCsv: ['name', 'used', 'debt', 'last', 'next'],
      rows: (rows: readonly { name: string }[]) => rows,
    };
    expect(listCsv(list, [{ name: '=1+1' }, { name: 'a, "b"\nc' }], sayAt(0))).toEqual([
      'name,used,debt,last,next',
      "'=1+1,1234567,-5,1970-01-01T00:00:00.000Z,",
      expect.stringMatching(/^"a, ""b"".*c",1234567,-5,1970-01-01T00:00:00.000Z,$/),
    ]);
  });
});

it('the CSV of changes has the values before and after: members as JSON, or the versions of a reload', () => {
  const base = {
    id: '1-1',
    at: '2026-11-29T06:23:24.410Z',
    process: 'p',
    processes: 1,
    by: 'ada',
    text: 'a',
  };
  const changes = [
    { ...base, action: 'update' as const, key: 'acme', before: { plan: 'free' }, after: { plan: 'pro' } },
    {
      ...{
        ...base,
        action: 'update' as const,
        key: 'acme',
        before: { plan: 'free' },
        after: { plan: 'pro' },
      },
      appliedLimits: { before: { perMinute: 60 }, after: { perMinute: 600 } },
    },
    { ...base, action: 'reload' as const, before: 'd6f399', after: 'ae7641' },
    { ...base, action: 'delete' as const, key: 'acme' },
  ];
  const [titles, ...rows] = timelineCsv(changeList, { isComplete: true, changes });
  expect(titles).toMatch(/,text,before,after,error,/);
  expect(rows.map((row) => row.split(',a,')[1])).toEqual([
    '"{""plan"":""free""}","{""plan"":""pro""}",,,,',
    '"{""plan"":""free"",""limits"":{""perMinute"":60}}","{""plan"":""pro"",""limits"":{""perMinute"":600}}",,,,',
    'd6f399,ae7641,,,,',
    ',,,,,',
  ]);
  const keysIn = (key?: string) => {
    const [, ...lines] = timelineCsv(changeList, withKey({ isComplete: true, changes }, key));
    return lines.map((line) => line.split(',')[4]);
  };
  expect([keysIn(), keysIn('acme')]).toEqual([
    ['acme', 'acme', '', 'acme'],
    ['acme', 'acme', 'acme', 'acme'],
  ]);
});

it('no export of the words and the pages has an inferred type any', () => {
  const folder = mkdtempSync(join(root, 'node_modules/.cache/declarations-'));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  const pages = 'gateway/admin/pages/browser';
  const options = ['--rootDir', '.', '--noEmit', 'false', '--incremental', 'false', '--outDir', folder];
  try {
    execFileSync('npx', ['tsc', '-p', pages, '--declaration', '--emitDeclarationOnly', ...options], {
      cwd: root,
      stdio: 'pipe',
    });
  } catch {
    // Some declarations of TypeScript files cannot be written. `npm run check` finds errors of types.
  }
  const declarations = globSync('gateway/**/{words,browser}/**/*.d.ts', { cwd: folder });
  expect(declarations.length).toBeGreaterThan(words.length);
  const inferred = declarations.flatMap((file) => {
    const source = readFileSync(join(root, file.replace(/\.d\.ts$/, '.js')), 'utf8');
    const lines = readFileSync(join(folder, file), 'utf8').split('\n');
    return lines
      .filter((line) => /\bany\b/.test(line) && !/^\s*(?:\/\*)?\*/.test(line))
      .filter((line) => !statesAny(source, line))
      .map((line) => `${file}: ${line.trim()}`);
  });
  // The library htm types the values of a template as any.
  expect(inferred).toEqual([expect.stringContaining('parts.d.ts: export declare const html:')]);
});

/** Whether the comments of the source state the type any, for the same member. */
function statesAny(source: string, line: string): boolean {
  const stated = /Record<string, any>|\w+\?: any/.exec(line)?.[0];
  return stated !== undefined && source.includes(stated);
}
