import { settingsJsonSchema } from '../../gateway/config/schema/settings-json-schema.ts';

interface JsonSchema {
  readonly properties?: Readonly<Record<string, JsonSchema>>;
  readonly additionalProperties?: JsonSchema | boolean;
  readonly items?: JsonSchema;
  readonly anyOf?: readonly JsonSchema[];
}

/** The path of each setting. In a path, `*` stands for a name that operators choose, and `[]` stands for an entry of a list. */
export function settingPaths(): readonly string[] {
  return [...new Set(settingsIn(JSON.parse(settingsJsonSchema())))];
}

function settingsIn({ properties, additionalProperties, items, anyOf = [] }: JsonSchema): readonly string[] {
  const below = (schema: JsonSchema, step: string) => settingsIn(schema).map((path) => `${step}.${path}`);
  const members = Object.entries(properties ?? {}).flatMap(([name, member]) => {
    const inside = below(member, name);
    return inside.length > 0 ? inside : [name];
  });
  const named = typeof additionalProperties === 'object' ? below(additionalProperties, '*') : [];
  return [...members, ...named, ...(items ? below(items, '[]') : []), ...anyOf.flatMap(settingsIn)];
}
