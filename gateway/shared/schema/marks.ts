import * as z from 'zod';

/**
 * The marks of settings, by the schema of each. They decide what `/settings`, the comparison of settings, the record of changes and reports
 * about a file show of a value.
 */
export const marks = z.registry<Mark>();

export interface Mark {
  /** true: a secret, a part of one, or the path of one. `digest`: a SHA-256 digest, which is shown by its first digits only. */
  readonly secret?: true | 'digest';
  /**
   * A URL that may contain a secret, in its user information and the values of its parameters (`credentials`), or in everything after its
   * origin (`path`).
   */
  readonly secretInUrl?: 'credentials' | 'path';
  /** The path of a file. It does not change the behaviour of the gateway, so a comparison ignores it. */
  readonly file?: true;
}

export function isMasked({ secret, secretInUrl }: Mark): boolean {
  return secret !== undefined || secretInUrl !== undefined;
}

/** Schemas that only wrap another, such as `optional`, have the kind `inner`. */
export type Parts =
  | { readonly kind: 'members'; readonly of: Readonly<Record<string, z.ZodType>> }
  | { readonly kind: 'entries'; readonly step: '[]' | '*'; readonly of: z.ZodType }
  | { readonly kind: 'options'; readonly of: readonly z.ZodType[] }
  | { readonly kind: 'inner'; readonly of: z.ZodType }
  | { readonly kind: 'leaf' };

export function partsOf(schema: z.ZodType): Parts {
  if (schema instanceof z.ZodObject) return { kind: 'members', of: schema.shape };
  if (schema instanceof z.ZodArray) return { kind: 'entries', step: '[]', of: schema.element as z.ZodType };
  if (schema instanceof z.ZodRecord) return { kind: 'entries', step: '*', of: schema.valueType as z.ZodType };
  if (schema instanceof z.ZodUnion) return { kind: 'options', of: schema.options as z.ZodType[] };
  if (schema instanceof z.ZodPipe) {
    const isConversion = schema.out instanceof z.ZodTransform || schema instanceof z.ZodCodec;
    return { kind: 'inner', of: (isConversion ? schema.in : schema.out) as z.ZodType };
  }
  return isWrapper(schema) ? { kind: 'inner', of: schema.unwrap() } : { kind: 'leaf' };
}

function isWrapper(schema: z.ZodType): schema is z.ZodType & { unwrap(): z.ZodType } {
  return 'unwrap' in schema;
}

/** With their paths, where `*` stands for a name that operators choose, and `[]` for an entry of a list. */
export function marksIn(
  schema: z.ZodType,
  path: readonly string[] = [],
): readonly { readonly path: readonly string[]; readonly mark: Mark }[] {
  const mark = marks.get(schema);
  if (mark !== undefined) return [{ path, mark }];
  const parts = partsOf(schema);
  switch (parts.kind) {
    case 'members':
      return Object.entries(parts.of).flatMap(([name, member]) => marksIn(member, [...path, name]));
    case 'entries':
      return marksIn(parts.of, [...path, parts.step]);
    case 'options':
      return parts.of.flatMap((option) => marksIn(option, path));
    case 'inner':
      return marksIn(parts.of, path);
    case 'leaf':
      return [];
  }
}
