/**
 * Deletes the lines of capabilities from the text of a list: their imports, and each line with a name that these imports define.
 *
 * @param names the names of capabilities, which are the names of their folders
 */
export function withoutCapabilities(list: string, names: readonly string[]): string {
  const imports = new RegExp(`^import \\{([^}]*)\\} from '\\.\\./(?:${names.join('|')})/[^']*';\\n`, 'gm');
  const imported = [...list.matchAll(imports)].flatMap(([, all = '']) =>
    all.split(',').map((one) => one.trim().replace(/^(?:type )?(?:\w+ as )?/, '')),
  );
  const isGone = (line: string) =>
    imported.some((name) => new RegExp(`\\b${name}\\b`).test(line)) ||
    names.some((name) => line.includes(`import('../${name}/`));
  return list
    .replace(imports, '')
    .split('\n')
    .filter((line) => !isGone(line))
    .join('\n');
}
