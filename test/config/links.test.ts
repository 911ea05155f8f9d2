import { spawnSync } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, it } from 'vitest';

const root = fileURLToPath(new URL('../../', import.meta.url));
const { stdout } = spawnSync('git', ['ls-files', '--cached', '--others', '--exclude-standard', '*.md'], {
  cwd: root,
  encoding: 'utf8',
});
const pages = stdout.split('\n').filter((page) => page !== '' && existsSync(join(root, page)));

const withoutCode = (text: string) =>
  text.replaceAll(/^ {4}.*$|^```[\s\S]*?^```/gm, '').replaceAll(/`[^`]*`/g, 'code');

/** The names by which links lead to the headings of a page, as GitHub makes them. */
function headingsOf(page: string): ReadonlySet<string> {
  const text = readFileSync(join(root, page), 'utf8').replaceAll(/^```[\s\S]*?^```/gm, '');
  const names = [...text.matchAll(/^#{1,6} (.+)$/gm)].map(([, title = '']) =>
    title
      .toLowerCase()
      .replaceAll(/\[([^\]]*)\]\([^)]*\)/g, '$1')
      .replaceAll(/[^\p{L}\p{N}\s_-]/gu, '')
      .replaceAll(' ', '-'),
  );
  return new Set(names);
}

it('every link of a page leads to a file and a heading of this repository', () => {
  expect(pages).toContain('README.md');
  const broken = pages.flatMap((page) => {
    const text = withoutCode(readFileSync(join(root, page), 'utf8'));
    const links = [...text.matchAll(/\]\((?![a-z]+:)([^)#\s]*)(?:#([^)\s]+))?\)/g)];
    return links.flatMap(([link, path = '', heading]) => {
      const target = path.startsWith('/') ? path.slice(1) : join(path === '' ? page : dirname(page), path);
      if (!existsSync(join(root, target))) return [`${page}: ${link}`];
      return heading === undefined || headingsOf(target).has(heading) ? [] : [`${page}: ${link}`];
    });
  });
  expect(broken).toEqual([]);
});
