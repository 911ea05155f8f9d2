import { Ajv2020 } from 'ajv/dist/2020.js';
import addFormats from 'ajv-formats';
import { apiDocument } from '../../gateway/admin/api/api-document.ts';
import type { AdminReply } from './admin-client.ts';
import { tunedBounds } from './tuned-bounds.ts';

// biome-ignore lint/suspicious/noExplicitAny: a parsed document
type Json = any;

export const apiBounds = tunedBounds({});

/** The document of the admin API. */
export const described: Json = apiDocument(apiBounds);

/** The API document in strict form: every member of an object must have a description. */
const strict: Json = JSON.parse(JSON.stringify(described), (_name, value: Json) =>
  value?.type === 'object' && value.properties !== undefined && value.additionalProperties === undefined
    ? { ...value, additionalProperties: false }
    : value,
);
/** Knows the schemas of the API document. */
export const ajvOfDocument = new Ajv2020({ strict: false, allErrors: true });
addFormats.default(ajvOfDocument);
ajvOfDocument.addSchema(strict, 'document');

const errorPlace = '#/components/responses/Error';

/** The differences between a response and its schema in the document; empty when there is no difference. */
export function faultsOf({ status, body }: AdminReply, method: string, path: string): readonly unknown[] {
  const { responses } = described.paths[path][method.toLowerCase()];
  const pointer = [path, method.toLowerCase(), 'responses', status in responses ? String(status) : 'default']
    .map((part) => part.replaceAll('~', '~0').replaceAll('/', '~1'))
    .join('/');
  const place: string =
    responses[status]?.$ref ?? (responses[status] ? `#/paths/${encodeURI(pointer)}` : errorPlace);
  const validate = ajvOfDocument.compile({ $ref: `document${place}/content/application~1json/schema` });
  return validate(body) ? [] : (validate.errors ?? []);
}

/**
 * Finds members that contain a time although their names do not end in `At`. Also finds members whose names end in
 * `At` although they contain no time.
 */
export function instantsOutOfPlace(value: unknown, name = ''): readonly string[] {
  if (Array.isArray(value)) return value.flatMap((item) => instantsOutOfPlace(item, name));
  if (typeof value === 'object' && value !== null) {
    return Object.entries(value).flatMap(([name, inner]) => instantsOutOfPlace(inner, name));
  }
  const isInstant = typeof value === 'string' && /^\d{4}-\d\d-\d\dT[\d:.]+Z$/.test(value);
  const isNamedSo = name === 'at' || /At$/.test(name);
  return isInstant === isNamedSo ? [] : [`${name}: ${value}`];
}
