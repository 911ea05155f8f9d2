import * as z from 'zod';
import { isMasked, marks, marksIn, partsOf } from '../shared/schema/marks.ts';
import { shownName, statedForm } from '../shared/schema/stated-form.ts';
import { isMapping } from '../shared/structures/plain-data.ts';
import { digestStart, list } from './response-parts.ts';

/**
 * The form that `statedForm` makes of a setting, also of other releases. Its description says how the response masks it. What the setting
 * means is in `x-setting`, because the text speaks of the configuration and not of the response.
 */
function shownSchema(schema: z.ZodType): z.ZodType {
  const mask = maskOf(schema);
  const described = (shown: z.ZodType) =>
    shown.meta({
      ...(mask !== undefined && { description: mask }),
      ...(schema.description !== undefined && { 'x-setting': schema.description }),
    });
  const mark = marks.get(schema);
  if (mark?.secret === 'digest') return digestStart;
  if (mark !== undefined && isMasked(mark)) {
    const shown = described(z.string());
    return schema instanceof z.ZodOptional ? shown.optional() : shown;
  }
  const parts = partsOf(schema);
  switch (parts.kind) {
    case 'members':
      return described(z.object(shownMembers(parts.of)));
    case 'entries':
      return described(
        parts.step === '[]' ? list(shownSchema(parts.of)) : z.record(z.string(), shownSchema(parts.of)),
      );
    case 'options':
      return described(z.union(parts.of.map(shownSchema)));
    case 'inner': {
      const shown = shownSchema(parts.of);
      return described(schema instanceof z.ZodOptional ? shown.optional() : withDefault(shown, schema));
    }
    case 'leaf':
      return described(z.unknown().meta({ of: schema }));
  }
}

/** Notes the default of a setting that is no mapping, in the form of the response. */
function withDefault(shown: z.ZodType, schema: z.ZodType): z.ZodType {
  if (!(schema instanceof z.ZodDefault || schema instanceof z.ZodPrefault)) return shown;
  const parsed = schema.safeParse(undefined);
  const usual = parsed.success ? statedForm(schema, parsed.data) : undefined;
  return usual === undefined || isMapping(usual) ? shown : shown.meta({ default: usual });
}

/** Undefined if the value as a whole has no mark. */
function maskOf(schema: z.ZodType): string | undefined {
  const mark = marksIn(schema).find(({ path }) => path.length === 0)?.mark;
  if (mark?.secret === true) return 'The response shows `***`.';
  if (mark?.secretInUrl === 'path') return 'The path and the parameters are shown as `***`.';
  if (mark?.secretInUrl === 'credentials')
    return 'User information and the values of parameters are shown as `***`.';
  return undefined;
}

/** Members in the form that `statedForm` makes. */
export function shownMembers(shape: Readonly<Record<string, z.ZodType>>): Record<string, z.ZodType> {
  return Object.fromEntries(
    Object.entries(shape).map(([name, member]) => [shownName(name), shownSchema(member)]),
  );
}
