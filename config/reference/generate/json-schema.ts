import { limitFieldNames } from '../../../gateway/keys/limits/limit-fields.ts';
import { bullet, code, either, sentences } from './markdown.ts';

/** The parts of a JSON Schema that the pages show. */
export interface JsonSchema {
  readonly $ref?: string;
  readonly type?: string;
  readonly description?: string;
  readonly default?: unknown;
  readonly const?: unknown;
  readonly enum?: readonly unknown[];
  readonly format?: string;
  readonly minimum?: number;
  readonly maximum?: number;
  readonly maxItems?: number;
  readonly properties?: Readonly<Record<string, JsonSchema>>;
  readonly required?: readonly string[];
  readonly items?: JsonSchema;
  readonly additionalProperties?: boolean | JsonSchema;
  readonly anyOf?: readonly JsonSchema[];
  readonly oneOf?: readonly JsonSchema[];
}

/** Lists the members of an object, and the members of these members below them. */
export function memberBullets(schema: JsonSchema, depth = 0): readonly string[] {
  const { properties = {}, required = [] } = schema;
  const hasLimits = limitFieldNames.every((name) => properties[name] !== undefined);
  return Object.entries(properties).flatMap(([name, member]) => {
    if (!hasLimits || !isLimit(name))
      return [
        bullet(memberText(name, member, required.includes(name)), depth),
        ...innerBullets(member, depth + 1),
      ];
    // The limits of the windows differ only in their names.
    const names = limitFieldNames.map((one) => code(one)).join(', ');
    // The head of the page states the range.
    const kind = typeText(member).replace(/^whole number from [\d,]+ to [\d,]+/, 'units');
    return name === limitFieldNames[0] ? [bullet(`${names} (${kind}, optional)`, depth)] : [];
  });
}

function isLimit(name: string): boolean {
  return limitFieldNames.some((one) => one === name);
}

/** The members of a nested object, of the entries of a list, or of named entries. */
export function innerBullets(schema: JsonSchema, depth: number): readonly string[] {
  const inner = insideOf(schema);
  return inner.flatMap((one) => memberBullets(one, depth));
}

function insideOf(schema: JsonSchema): readonly JsonSchema[] {
  const { items, additionalProperties, anyOf = [], oneOf = [] } = schema;
  if (schema.properties !== undefined) return [schema];
  if (items !== undefined) return insideOf(items);
  // Entries that may also be numbers, such as limits by window, have no members in common.
  if (typeof additionalProperties === 'object')
    return additionalProperties.anyOf?.some(({ type }) => type === 'integer')
      ? []
      : insideOf(additionalProperties);
  return [...anyOf, ...oneOf].flatMap(insideOf);
}

function memberText(name: string, schema: JsonSchema, isRequired: boolean): string {
  const { default: fallback } = schema;
  const isOptional = !isRequired && fallback === undefined;
  const kind = [typeText(schema), ...(isOptional ? ['optional'] : [])].join(', ');
  const preset = fallback === undefined ? undefined : `Default: ${code(JSON.stringify(fallback))}`;
  return `${code(name)} (${kind})${rest(sentences(schema.description, preset))}`;
}

function rest(text: string): string {
  return text === '' ? '' : `: ${text}`;
}

/** Such as "a whole number from 1 to 100" or "a list of texts". */
export function typeText(schema: JsonSchema): string {
  const { $ref, type, format, minimum, maximum, items, anyOf, oneOf } = schema;
  if ($ref !== undefined) return nameOfRef($ref);
  if (schema.const !== undefined) return code(JSON.stringify(schema.const));
  if (schema.enum !== undefined) return either(schema.enum.map((word) => code(String(word))));
  const options = anyOf ?? oneOf;
  if (options !== undefined && type !== 'object')
    return either([...new Set(options.map((one) => typeText({ ...one, ...(type && { type }) })))]);
  switch (type) {
    case 'array':
      return items === undefined ? 'list' : `list of ${typeText(items)}`;
    case 'object':
      return 'object';
    case 'integer':
      return rangeText('whole number', minimum, maximum);
    case 'number':
      return rangeText('number', minimum, maximum);
    case 'boolean':
      return 'true or false';
    case 'null':
      return 'null';
    default:
      return format === 'date-time' ? 'time' : format === 'date' ? 'date' : 'text';
  }
}

function rangeText(what: string, from: number | undefined, to: number | undefined): string {
  const [min, max] = [from, to].map((bound) =>
    bound === undefined || Math.abs(bound) >= Number.MAX_SAFE_INTEGER
      ? undefined
      : bound.toLocaleString('en'),
  );
  if (min !== undefined && max !== undefined) return `${what} from ${min} to ${max}`;
  if (max !== undefined) return `${what} up to ${max}`;
  return min === undefined || min === '0' ? what : `${what} from ${min}`;
}

/** A link to the section of a component. */
function nameOfRef(ref: string): string {
  const name = ref.split('/').at(-1) ?? '';
  return `[${name}](#${name.toLowerCase()})`;
}
