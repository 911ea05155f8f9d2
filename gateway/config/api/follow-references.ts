import { dirname, isAbsolute, join, normalize } from 'node:path';
import { isMapping } from '../../shared/structures/plain-data.ts';
import { configSizes } from '../config-sizes.ts';
import type { Place, Problem } from '../problems/problem.ts';
import type { YamlSource } from '../source/parse-yaml.ts';

export interface ApiFile {
  readonly file: string;
  readonly source: YamlSource;
}

export interface ApiPart {
  readonly in: ApiFile;
  readonly path: readonly PropertyKey[];
  readonly value: unknown;
  /** The references that lead here, each as a file and a JSON Pointer. */
  readonly trail?: readonly string[];
}

/** The target of a `$ref`: a JSON Pointer (RFC 6901) in the same or another file. */
export interface Target {
  readonly in: ApiFile;
  readonly pointer: string;
}

export interface References {
  readonly root: ApiFile;
  /** Reads the file that a `$ref` names. Undefined for a URL, which is not followed, or after a problem. */
  locate(reference: string, at: ApiPart): Target | undefined;
  /** Undefined after a problem. */
  follow(part: ApiPart): ApiPart | undefined;
}

/**
 * Follows relative paths, but no URLs. @param open reads a file; reports the reason itself and returns undefined for a file that it cannot
 * read
 */
export function createReferences({
  root,
  open,
  report,
}: {
  readonly root: ApiFile;
  readonly open: (file: string, mentionedAt: Place) => YamlSource | undefined;
  readonly report: (problem: () => Problem) => void;
}): References {
  const files = new Map<string, ApiFile | undefined>([[normalize(root.file), root]]);

  function placeOf({ in: { source }, path }: ApiPart): Place {
    return source.placeOf([...path, '$ref']);
  }

  function fileOf(name: string, at: ApiPart): ApiFile | undefined {
    const file = join(dirname(at.in.file), name);
    if (files.has(file)) return files.get(file);
    if (files.size >= configSizes.apiFilesMax) {
      const message = `the API document may have at most ${configSizes.apiFilesMax} files`;
      report(() => ({ ...placeOf(at), message }));
      return undefined;
    }
    const source = open(file, placeOf(at));
    const opened = source && { file, source };
    files.set(file, opened);
    return opened;
  }

  function locate(reference: string, at: ApiPart): Target | undefined {
    const [name = '', fragment = ''] = reference.split('#', 2);
    if (isAddress(name) || isAbsolute(name)) return undefined;
    const path = decoded(name);
    const pointer = decoded(fragment);
    const target = path === '' ? at.in : path === undefined ? undefined : fileOf(path, at);
    return target && pointer !== undefined ? { in: target, pointer } : undefined;
  }

  return {
    root,
    locate,
    follow(part) {
      const { value } = part;
      const reference = isMapping(value) ? value.$ref : undefined;
      const fail = (message: string) => {
        report(() => ({ ...placeOf(part), message }));
        return undefined;
      };
      if (typeof reference !== 'string') return fail('`$ref` must be text, a path or `#/…`');
      const [name = '', fragment = ''] = reference.split('#', 2);
      if (isAddress(name) || isAbsolute(name))
        return fail('the gateway follows `$ref` to a relative path only; copy the file beside this one');
      if (fragment !== '' && !fragment.startsWith('/'))
        return fail('after `#` the gateway follows a JSON Pointer only, as in `#/components/pathItems/pets`');
      const target = locate(reference, part);
      if (target === undefined) return undefined;
      const { trail = [] } = part;
      const step = `${target.in.file}#${target.pointer}`;
      if (trail.includes(step)) return fail('`$ref` leads back to itself');
      if (trail.length === configSizes.referencesMax) {
        return fail(`\`$ref\` leads through more than ${configSizes.referencesMax} other references`);
      }
      const found = resolvePointer(target);
      if (found === undefined) return fail('`$ref` has no target; correct the path after `#`');
      return { ...found, trail: [...trail, step] };
    },
  };
}

/** An absolute or network-path reference (RFC 3986 §4.2). */
function isAddress(name: string): boolean {
  return /^([A-Za-z][A-Za-z0-9+.-]*:|\/\/)/.test(name);
}

function decoded(text: string): string | undefined {
  try {
    return decodeURIComponent(text);
  } catch {
    return undefined;
  }
}

function resolvePointer({ in: file, pointer }: Target): ApiPart | undefined {
  const path = pointer === '' ? [] : pointer.slice(1).split('/').map(unescapeToken);
  let { value } = file.source;
  for (const name of path) {
    if (typeof value !== 'object' || value === null || !Object.hasOwn(value, name)) return undefined;
    value = (value as Record<string, unknown>)[name];
  }
  return { in: file, path, value };
}

/** RFC 6901 §4. */
function unescapeToken(token: string): string {
  return token.replaceAll('~1', '/').replaceAll('~0', '~');
}
