import { apiDocument } from '../../../gateway/admin/api/api-document.ts';
import { ranByField, ranBySchema } from '../../../gateway/admin/wires/ran-by.ts';
import { defaultBounds } from '../../../gateway/shared/timeouts-and-sizes.ts';
import { innerBullets, type JsonSchema, memberBullets, typeText } from './json-schema.ts';
import { bullet, code, page, pageHead, sentences } from './markdown.ts';

interface Parameter {
  readonly $ref?: string;
  readonly name: string;
  readonly in: string;
  readonly description?: string | undefined;
  readonly required?: boolean;
  readonly schema: JsonSchema;
}

interface Content {
  readonly 'application/json': { readonly schema: JsonSchema };
}

interface Answer {
  readonly $ref?: string;
  readonly description: string;
  readonly content?: Content;
}

interface Operation {
  readonly tags: readonly string[];
  readonly summary: string;
  readonly description: string;
  readonly parameters?: readonly Parameter[];
  readonly requestBody?: { readonly content: Content };
  readonly responses: Readonly<Record<string, Answer>>;
}

interface Document {
  readonly info: { readonly description: string };
  readonly tags: readonly { readonly name: string; readonly description: string }[];
  readonly paths: Readonly<Record<string, Readonly<Record<string, Operation>>>>;
  readonly components: {
    readonly parameters: Readonly<Record<string, Parameter>>;
    readonly responses: Readonly<Record<string, Answer>>;
    readonly schemas: Readonly<Record<string, JsonSchema>>;
    readonly securitySchemes: { readonly token: { readonly description: string } };
  };
}

/** The operations of the admin API, from its OpenAPI document. */
export function adminApiPage(): string {
  const document = apiDocument(defaultBounds) as unknown as Document;
  const { info, tags, paths, components } = document;
  const operations = Object.entries(paths).flatMap(([path, byMethod]) =>
    Object.entries(byMethod).map(([method, operation]) => ({
      title: `${method.toUpperCase()} ${path}`,
      ...operation,
    })),
  );
  return page([
    pageHead('The admin API', 'the wires of the routes (`gateway/admin/wires/` and the capabilities)'),
    sentences(
      info.description,
      components.securitySchemes.token.description,
      `A request that changes something may have the header field ${code(ranByField)}:`,
      ranBySchema.description?.replace(/^T/, 't'),
      'Paths are below `/api/v1` of the admin listener. Parameters are in the query unless otherwise noted. Limits of windows (`perSecond` to `perMonth`) are whole numbers of units from 1 to 999,999,999,999,999.',
    ),
    ...tags.flatMap(({ name, description }) => [
      `## ${name}`,
      description,
      ...operations.filter((one) => one.tags.includes(name)).flatMap((one) => operationParts(one, document)),
    ]),
    '## Errors',
    errorLines(components.responses.Error?.description ?? ''),
    '## Schemas',
    // The order of the document depends on the order in which modules are loaded.
    ...Object.entries(components.schemas)
      .toSorted(([a], [b]) => (a < b ? -1 : 1))
      .flatMap(([name, schema]) => [
        `### ${name}`,
        sentences(schema.description),
        (schema.properties ? memberBullets(schema) : innerBullets(schema, 0)).join('\n'),
      ]),
  ]);
}

function operationParts(
  operation: Operation & { readonly title: string },
  { components }: Document,
): readonly string[] {
  const { title, summary, description, parameters = [], requestBody, responses } = operation;
  const stated = parameters.map((one) => components.parameters[one.$ref?.split('/').at(-1) ?? ''] ?? one);
  const body = requestBody?.content['application/json'].schema;
  const answers = Object.entries(responses).filter(([status]) => /^2/.test(status));
  return [
    `### ${code(title)}`,
    sentences(summary, description),
    [
      ...stated.filter(({ name }) => name !== 'id' && name !== ranByField).map(parameterLine),
      ...(body === undefined ? [] : [bullet(`Body: ${typeText(body)}`), ...innerBullets(body, 1)]),
      ...answers.flatMap(([status, answer]) => {
        const shown = components.responses[answer.$ref?.split('/').at(-1) ?? ''] ?? answer;
        const schema = shown.content?.['application/json'].schema;
        const what = schema?.$ref === undefined ? undefined : typeText(schema);
        const text = bullet(`${status}: ${what ?? shown.description}`);
        return schema === undefined ? [text] : [text, ...innerBullets(schema, 1)];
      }),
    ].join('\n'),
  ];
}

function parameterLine({ name, in: place, description, required, schema }: Parameter): string {
  const where =
    place === 'path'
      ? 'in the path'
      : place === 'header'
        ? 'header field'
        : required
          ? 'required'
          : undefined;
  const preset = schema.default === undefined ? undefined : `Default: ${code(String(schema.default))}`;
  const about = where === undefined ? typeText(schema) : `${where}, ${typeText(schema)}`;
  return bullet(`${code(name)} (${about}): ${sentences(description, preset)}`);
}

/** The description of errors has a sentence for each status, which begins with it. */
function errorLines(description: string): string {
  return description
    .split(/(?<=\.) (?=\d{3}[:,])/)
    .map((line) => bullet(line))
    .join('\n');
}
