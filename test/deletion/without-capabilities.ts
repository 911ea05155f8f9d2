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

/**
 * Replaces links by their texts if their file is gone.
 *
 * @param isGone gets the path of a link, without its heading
 */
export function withoutLinks(page: string, isGone: (path: string) => boolean): string {
  return page.replace(/\[([^\][]*)\]\(([^():#\s]+)(#[^)\s]*)?\)/g, (link, text: string, path: string) =>
    isGone(path) ? text : link,
  );
}

/** Deletes the settings at the top level of a configuration in YAML whose names are not in the schema. */
export function withoutSettings(yaml: string, known: ReadonlySet<string>): string {
  return withoutBlocks(yaml, /^()(\w+):/, (block) => !known.has(block.split(':')[0] ?? ''));
}

/**
 * Deletes the alerts that read one of these metrics, or their tests.
 *
 * @param yaml the rules or the tests for Prometheus
 * @param entry the first member of an alert or of a test
 */
export function withoutAlerts(yaml: string, entry: 'alert' | 'name', metrics: readonly string[]): string {
  return withoutBlocks(yaml, new RegExp(`^( *)- ${entry}: `), (block) =>
    metrics.some((name) => new RegExp(`\\b${name}\\b`).test(block)),
  );
}

/**
 * Deletes blocks of lines. A block is a line that `begins` matches, and the following lines that are empty or have a deeper indentation.
 *
 * @param begins its first group is the indentation of the line
 */
function withoutBlocks(text: string, begins: RegExp, isGone: (block: string) => boolean): string {
  const lines = text.split('\n');
  const kept: string[] = [];
  for (let at = 0; at < lines.length; ) {
    const begin = begins.exec(lines[at] ?? '');
    let end = at + 1;
    if (begin !== null) {
      const indentation = (begin[1] ?? '').length;
      while (end < lines.length && !/\S/.test((lines[end] ?? '').slice(0, indentation + 1))) end++;
    }
    const block = lines.slice(at, end);
    if (begin === null || !isGone(block.join('\n'))) kept.push(...block);
    at = end;
  }
  return kept.join('\n');
}
