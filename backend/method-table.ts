/** The methods of each path, for 405 responses with `Allow` (RFC 9110 §15.5.6). Fastify alone responds with 404 to a wrong method. */
export interface MethodTable {
  /** Adds a route; `template` has `:name` for a parameter. */
  add(template: string, method: string | readonly string[]): void;
  /** Returns the value of `Allow` for a request target, or undefined when the path does not exist. */
  allowedAt(target: string): string | undefined;
}

export function createMethodTable(): MethodTable {
  const methodsByTemplate = new Map<string, Set<string>>();

  return {
    add(template, method) {
      const methods = methodsByTemplate.get(template) ?? new Set();
      methodsByTemplate.set(template, methods);
      for (const each of [method].flat()) methods.add(each);
    },

    allowedAt(target) {
      const [path = ''] = target.split('?', 1);
      const template = [...methodsByTemplate.keys()].find((each) => covers(each, path));
      const methods = template === undefined ? undefined : methodsByTemplate.get(template);
      return methods && [...methods].sort().join(', ');
    },
  };
}

function covers(template: string, path: string): boolean {
  const expected = template.split('/');
  const segments = path.split('/');
  return (
    expected.length === segments.length &&
    expected.every((each, index) =>
      each.startsWith(':') ? segments[index] !== '' : each === segments[index],
    )
  );
}
