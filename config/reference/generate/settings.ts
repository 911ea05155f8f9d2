import * as z from 'zod';
import { settingsSchema } from '../../../gateway/config/schema/settings-schema.ts';
import { type Parts, partsOf } from '../../../gateway/shared/schema/marks.ts';
import { bullet, code, either, page, pageHead, sentences } from './markdown.ts';

/** Where each mapping and each member was described first, so that it is described once. */
interface Described {
  readonly mappings: Map<z.ZodType, string>;
  readonly members: Map<z.ZodType, string>;
}

/** The settings, with their descriptions, forms and defaults from the schema of the configuration. */
export function settingsPage(): string {
  const described: Described = { mappings: new Map(), members: new Map() };
  const { shape } = settingsSchema;
  return page([
    pageHead('Settings', '`settings-schema.ts` and the schemas that it imports'),
    [
      'All settings of a configuration file. In a path, `*` stands for a name that you choose, and `[]` for each entry of a list.',
      'A required setting must be present if its mapping is.',
      'The path of a file is relative to the configuration file.',
      'A value may contain variables of the environment: `${NAME}`, or `${NAME:-default}`.',
      'Editors with the YAML language server check and complete a file that begins with `# yaml-language-server: $schema=PATH/tollgate.schema.json`.',
    ].join(' '),
    Object.keys(shape)
      .map((name) => `[${code(name)}](#${name.toLowerCase()})`)
      .join(' · '),
    ...Object.entries<z.ZodType>(shape).flatMap(([name, schema]) => [
      `## ${code(name)}`,
      factsOf(schema),
      partLines(schema, name, described).join('\n'),
    ]),
  ]);
}

/** The lines about everything below a setting. */
function partLines(schema: z.ZodType, path: string, described: Described): readonly string[] {
  const core = coreOf(schema);
  const parts = partsOf(core);
  switch (parts.kind) {
    case 'members':
      return memberLines(core, parts, path, described);
    case 'entries':
      return partLines(parts.of, parts.step === '*' ? `${path}.*` : `${path}[]`, described);
    case 'options':
      return parts.of.flatMap((option) => partLines(option, path, described));
    default:
      return [];
  }
}

function memberLines(
  core: z.ZodType,
  { of }: Extract<Parts, { kind: 'members' }>,
  path: string,
  described: Described,
): readonly string[] {
  const same = described.mappings.get(core);
  if (same !== undefined) return [bullet(`${code(path)} has the members of ${code(same)}.`)];
  described.mappings.set(core, path);
  const entries = Object.entries(of);
  const repeated = entries.filter(([, member]) => described.members.has(member));
  const origin = repeated[0] === undefined ? '' : (described.members.get(repeated[0][1]) ?? '');
  const names = repeated.map(([name]) => code(name));
  return [
    ...(repeated.length === 0
      ? []
      : [
          bullet(
            `${either(names).replace(' or ', ' and ')} in ${code(path)} ${names.length === 1 ? 'has the meaning that it has' : 'have the meaning that they have'} in ${code(origin)}.`,
          ),
        ]),
    ...entries
      .filter(([, member]) => !described.members.has(member))
      .flatMap(([name, member]) => {
        described.members.set(member, path);
        const own = `${path}.${name}`;
        return [bullet(`${code(own)}: ${factsOf(member)}`), ...partLines(member, own, described)];
      }),
  ];
}

/** Forms that the description of the setting states, too: a path or a name, a mapping by name, and two words. */
const isSaid = /^(the |a mapping of |\w+ or \w+$)/;

/** The description, the form, the default, and whether the setting is required. */
function factsOf(schema: z.ZodType): string {
  const { error } = coreOf(schema).safeParse(Symbol('no value'));
  const form = error?.issues[0]?.message.replace(/^must be /, '').split('; ')[0] ?? '';
  const fallback = defaultOf(schema);
  const isMapping = partsOf(coreOf(schema)).kind === 'members';
  const needed = fallback === undefined && !schema.safeParse(undefined).success;
  return sentences(
    descriptionOf(schema),
    isMapping || isSaid.test(form) ? undefined : `Write ${form}`,
    fallback === undefined ? undefined : `Default: ${code(fallback)}`,
    needed ? 'Required' : undefined,
  );
}

function descriptionOf(schema: z.ZodType): string | undefined {
  if (schema.description !== undefined) return schema.description;
  const parts = partsOf(schema);
  return parts.kind === 'inner' ? descriptionOf(parts.of) : undefined;
}

/** As it would stand in the file. A mapping whose members have defaults has none. */
function defaultOf(schema: z.ZodType): string | undefined {
  if (schema instanceof z.ZodDefault || schema instanceof z.ZodPrefault) {
    const { defaultValue } = schema.def;
    const isMapping = typeof defaultValue === 'object' && !Array.isArray(defaultValue);
    return isMapping
      ? undefined
      : typeof defaultValue === 'string'
        ? defaultValue
        : JSON.stringify(defaultValue);
  }
  const parts = partsOf(schema);
  return parts.kind === 'inner' ? defaultOf(parts.of) : undefined;
}

/** The schema without what only wraps it. */
function coreOf(schema: z.ZodType): z.ZodType {
  const parts = partsOf(schema);
  return parts.kind === 'inner' ? coreOf(parts.of) : schema;
}
