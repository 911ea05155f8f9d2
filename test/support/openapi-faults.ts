import { Ajv2020 } from 'ajv/dist/2020.js';
import addFormats from 'ajv-formats';

// biome-ignore lint/suspicious/noExplicitAny: a parsed document
type Json = any;

/**
 * The complaints of OpenAPI 3.1 linters about a document; empty without complaints. Checks only those recommended rules of redocly and
 * spectral that our documents have broken or could break.
 */
export function openApiFaults(document: Json): readonly string[] {
  const { info, servers, tags, paths, components } = document;
  const faults: string[] = [];
  const need = (place: string, holds: boolean) => void (holds || faults.push(place));
  need('info', Boolean(info.title && info.version && info.description && info.contact && info.license?.name));
  need('servers', servers.length > 0);
  const tagNames = new Set(tags.map(({ name }: Json) => name));
  const ids = new Set<string>();
  for (const [path, methods] of Object.entries<Json>(paths)) {
    for (const [method, operation] of Object.entries<Json>(methods)) {
      const place = `${method} ${path}`;
      const { operationId, summary, description, tags = [], responses, ...others } = operation;
      need(`${place}: operationId`, /^\w+$/.test(operationId) && !ids.has(operationId));
      ids.add(operationId);
      need(`${place}: summary or description`, Boolean(summary && description));
      need(`${place}: tags`, tags.length > 0 && tags.every((tag: string) => tagNames.has(tag)));
      for (const status of ['2', '4'])
        need(
          `${place}: no ${status}xx response`,
          Object.keys(responses).some((one) => one[0] === status),
        );
      const names = Object.keys(others).filter((name) => !operationMembers.has(name) && !/^x-/.test(name));
      need(`${place}: ${names}`, names.length === 0);
    }
  }
  // A strict compilation also reports unknown members of a schema. Inside `{ … }` in YAML, a comma ends an unquoted text, and the rest of
  // the text becomes an unknown member.
  const ajv = new Ajv2020({ strict: false, strictSchema: true });
  addFormats.default(ajv);
  ajv.addVocabulary(['paths', 'components', 'discriminator', 'xml', 'externalDocs', 'example', 'x-setting']);
  ajv.addSchema({ paths, components }, 'document');
  for (const pointer of schemaPlaces({ paths, components }, '')) {
    try {
      ajv.compile({ $ref: `document#${pointer}` });
    } catch (error) {
      faults.push(`${pointer}: ${error instanceof Error ? error.message : error}`);
    }
  }
  return faults;
}

/** The locations of schemas in the document, as JSON pointers in a URI fragment. */
function schemaPlaces(value: Json, pointer: string): readonly string[] {
  if (typeof value !== 'object' || value === null) return [];
  return Object.entries<Json>(value).flatMap(([name, inner]) => {
    const place = `${pointer}/${encodeURIComponent(name.replaceAll('~', '~0').replaceAll('/', '~1'))}`;
    if (name === 'schema' || pointer === '/components/schemas') return [place];
    return schemaPlaces(inner, place);
  });
}

const operationMembers = new Set([
  'parameters',
  'requestBody',
  'security',
  'deprecated',
  'servers',
  'externalDocs',
]);
