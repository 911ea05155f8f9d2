import { readFileSync } from 'node:fs';
import { parse } from 'yaml';

/** The OpenAPI document of the admin API, JSON. Read when it is first asked for: most processes are never. */
export function createApiDocument(): () => string {
  let text: string | undefined;
  return () => {
    text ??= JSON.stringify(parse(readFileSync(new URL('./openapi.yaml', import.meta.url), 'utf8')));
    return text;
  };
}
