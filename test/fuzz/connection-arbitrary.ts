import fc from 'fast-check';
import { secrets } from './fuzz-keys.ts';
import * as strange from './strange-parts.ts';

/** The writes of one client connection as Latin-1 texts. */
export type Pieces = readonly string[];

/**
 * Generates one to three requests. A request has ordinary parts and a few strange parts. In some cases, single bytes are changed. The text
 * is then cut into writes. fast-check shrinks a failing connection: it prefers few requests, ordinary parts and a single write.
 */
export function connectionArbitrary(): fc.Arbitrary<Pieces> {
  return fc
    .record({
      messages: fc.array(messages, { minLength: 1, maxLength: 3 }),
      mutations: seldom(none<Mutation>(), fc.array(mutations, { minLength: 1, maxLength: 3 })),
      cuts: fc.array(positions, { maxLength: 3 }),
    })
    .map((connection) => {
      const text = connection.mutations.reduce(mutate, connection.messages.join(''));
      return cut(text, connection.cuts);
    });
}

/** Generates `rare` in one of ten cases. If a rare value fails, fast-check also tries an ordinary value. */
function seldom<T>(ordinary: fc.Arbitrary<T>, rare: fc.Arbitrary<T>): fc.Arbitrary<T> {
  const options = { withCrossShrink: true };
  return fc.oneof(options, { weight: 9, arbitrary: ordinary }, { weight: 1, arbitrary: rare });
}

const none = <T>(): fc.Arbitrary<readonly T[]> => fc.constant([]);
const oneOf = <T>(values: readonly T[]): fc.Arbitrary<T> => fc.constantFrom(...values);

const methods = seldom(fc.constantFrom('GET', 'POST', 'HEAD'), oneOf(strange.strangeMethods));

const targets = seldom(
  fc.oneof(
    fc.constantFrom('/v1/pets', '/v1/pets?status=sold&limit=1', '/v1/store/orders'),
    fc.nat(99_999).map((id) => `/v1/pets/${id}`),
  ),
  oneOf(strange.strangeTargets),
);

const versions = seldom(fc.constant('HTTP/1.1'), oneOf(strange.strangeVersions));
const spaces = seldom(fc.constant(' '), fc.constantFrom('  ', '\t', ''));
const lineEnds = fc.oneof(
  { withCrossShrink: true },
  { weight: 80, arbitrary: fc.constant('\r\n') },
  { weight: 1, arbitrary: oneOf(strange.strangeLineEnds) },
);

const hosts = seldom(fc.constant<readonly string[]>(['Host: api.test']), oneOf(strange.strangeHosts));

const authorizations = seldom(
  fc
    .constantFrom(secrets.valid, secrets.valid, secrets.other, ...Object.values(secrets))
    .map((secret) => [`Authorization: Bearer ${secret}`]),
  oneOf(strange.strangeAuthorizations),
);

/** Fields that only the gateway may set. Some backends accept such a spelling as the real name. */
const forgedFields = fc
  .record({
    name: oneOf(strange.ownNames),
    separator: fc.constantFrom('-', '_', '.', '~'),
    isUpper: fc.boolean(),
  })
  .map(({ name, separator, isUpper }) => {
    const spelled = name.replaceAll('-', separator);
    return `${isUpper ? spelled.toUpperCase() : spelled}: ${strange.forgery}`;
  });

const otherFields = seldom(
  none<string>(),
  fc.array(fc.oneof(oneOf(strange.strangeFields), forgedFields), { minLength: 1, maxLength: 3 }),
);

const contents = fc.oneof(
  oneOf(strange.contents),
  fc.nat(5_000).map((length) => 'b'.repeat(length)),
);

const sizeLines = seldom(
  fc.constant((hex: string) => hex),
  oneOf(strange.strangeSizes),
);

const chunkedBodies = fc
  .record({
    content: contents,
    sizeLine: sizeLines,
    split: fc.nat(20),
    end: lineEnds,
    last: seldom(fc.constant('0\r\n\r\n'), oneOf(strange.strangeLastChunks)),
  })
  .map(({ content, sizeLine, split, end, last }) => {
    const chunks = [content.slice(0, split), content.slice(split)].filter((chunk) => chunk !== '');
    return chunks.map((chunk) => `${sizeLine(chunk.length.toString(16))}\r\n${chunk}${end}`).join('') + last;
  });

interface Framed {
  readonly fields: readonly string[];
  readonly body: string;
}

const framings: fc.Arbitrary<Framed> = fc.oneof(
  { withCrossShrink: true },
  { weight: 6, arbitrary: fc.constant({ fields: [], body: '' }) },
  { weight: 4, arbitrary: contents.map((body) => ({ fields: [`Content-Length: ${body.length}`], body })) },
  { weight: 4, arbitrary: chunkedBodies.map((body) => ({ fields: ['Transfer-Encoding: chunked'], body })) },
  {
    weight: 2,
    arbitrary: fc.record({
      fields: fc.shuffledSubarray(strange.framingFields, { minLength: 1, maxLength: 2 }),
      body: fc.oneof(contents, chunkedBodies),
    }),
  },
);

const messages = fc
  .record({
    method: methods,
    target: targets,
    version: versions,
    spaces: fc.tuple(spaces, spaces),
    hosts,
    authorizations,
    otherFields,
    framing: framings,
    order: fc.nat(5),
    ends: fc.array(lineEnds, { minLength: 12, maxLength: 12 }),
  })
  .map(({ method, target, version, spaces: [first, second], framing, order, ends, ...fields }) => {
    const lines = [...fields.hosts, ...fields.authorizations, ...fields.otherFields];
    lines.splice(order, 0, ...framing.fields);
    const head = [`${method}${first}${target}${second}${version}`, ...lines, ''];
    return head.map((line, i) => line + (ends[i] ?? '\r\n')).join('') + framing.body;
  });

/** A position in a text of any length, in millionths of that length. */
const positions = fc.nat(999_999);

function indexAt(text: string, position: number): number {
  return Math.floor((position / 1_000_000) * text.length);
}

interface Mutation {
  readonly position: number;
  /** The number of removed bytes. */
  readonly length: number;
  /** The text that replaces the bytes. If the text is undefined, the bytes are repeated. */
  readonly text: string | undefined;
}

const mutations: fc.Arbitrary<Mutation> = fc.record({
  position: positions,
  length: fc.nat(4),
  text: fc.option(
    fc.oneof(
      fc.constantFrom(
        '\0',
        '\r',
        '\n',
        '\r\n',
        ' ',
        '\t',
        ':',
        ',',
        ';',
        '%',
        '\x0b',
        '\x7f',
        '\xff',
        '0',
        '-',
      ),
      fc.nat(255).map((byte) => String.fromCharCode(byte)),
      fc.constant(''),
    ),
    { nil: undefined },
  ),
});

function mutate(original: string, { position, length, text }: Mutation): string {
  const start = indexAt(original, position);
  const taken = original.slice(start, start + length);
  return original.slice(0, start) + (text ?? taken + taken) + original.slice(start + length);
}

function cut(text: string, cuts: readonly number[]): Pieces {
  const indexes = cuts.map((position) => indexAt(text, position)).sort((a, b) => a - b);
  const bounds = [0, ...indexes, text.length];
  return bounds
    .slice(1)
    .map((end, i) => text.slice(bounds[i], end))
    .filter((piece) => piece !== '');
}
