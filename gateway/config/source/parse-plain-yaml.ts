import {
  COLLECTION_STYLE,
  EVENT_ID,
  type Event,
  getScalarValue,
  parseEvents,
  SCALAR_STYLE,
  type ScalarEvent,
} from 'js-yaml';
import { absent, isEmpty, offsetOfKey, parserOptions } from './plain-yaml-offset.ts';

/**
 * Parses an API document in YAML with `js-yaml`, which takes a tenth of the time of `yaml`. The value is the same as the value of `yaml`.
 *
 * Returns undefined if `js-yaml` refuses the text, or if the two libraries may read the text differently. Such a text has anchors, tags,
 * several documents, or other syntax that is rare in API documents. The function also returns undefined for a name that occurs twice in a
 * mapping, and for the name `__proto__`. `yaml` then reads the text, or finds the problem.
 */
export function parsePlainYaml(text: string): { readonly value: unknown } | undefined {
  if (rareSyntax.some((pattern) => pattern.test(text))) return undefined;
  try {
    return { value: readDocument(text, parseEvents(text, parserOptions)) };
  } catch {
    // `js-yaml` refuses the text, or `readDocument` found rare syntax.
    return undefined;
  }
}

/**
 * Syntax in which `js-yaml` accepts more than `yaml` does. A match inside a quoted text or a comment is harmless, because `yaml` then reads
 * the document.
 */
const rareSyntax: readonly RegExp[] = [
  // The first line is indented.
  /^[ \t]/,
  // A directive, or the end of a document.
  /(?:^|\n)(?:%|\.\.\.)/,
  // A carriage return without a line feed.
  /\r(?!\n)/,
  // A byte order mark after the start.
  /(?!^)\uFEFF/,
  // A tab that may be part of the indentation, or that may separate two tokens.
  /(?:^|[\s?:,[\]{}-])\t/,
];

/** Makes the value of the document from the events of `js-yaml`. Throws an error if there is rare syntax. */
function readDocument(text: string, events: readonly Event[]): unknown {
  let at = 0;

  function next(): Event {
    const event = events[at++];
    if (event === undefined) throw new RareSyntax('the document is incomplete');
    if ('tagStart' in event && (event.tagStart !== absent || event.anchorStart !== absent)) {
      throw new RareSyntax('a tag or an anchor');
    }
    return event;
  }

  /** If the collection ends here, advances past its end and returns true. */
  function ends(): boolean {
    if (events[at]?.type !== EVENT_ID.POP) return false;
    at += 1;
    return true;
  }

  function readValue(): unknown {
    const event = next();
    if (event.type === EVENT_ID.MAPPING) return readMapping(event.style === COLLECTION_STYLE.BLOCK);
    if (event.type === EVENT_ID.SEQUENCE) return readSequence();
    if (event.type !== EVENT_ID.SCALAR) throw new RareSyntax('an alias');
    const scalar = readScalar(text, event);
    return event.style === SCALAR_STYLE.PLAIN ? resolvePlain(scalar) : scalar;
  }

  function readMapping(isBlock: boolean): unknown {
    const mapping: Record<string, unknown> = {};
    for (let isFirst = true; !ends(); isFirst = false) {
      const key = next();
      if (key.type !== EVENT_ID.SCALAR || isEmpty(key) || isBlockScalar(key)) {
        throw new RareSyntax('a key that is no text on one line');
      }
      if (isBlock && !startsLine(text, offsetOfKey(key), isFirst)) {
        throw new RareSyntax('a field that does not start its line');
      }
      // `yaml` reads every key as text.
      const name = readScalar(text, key);
      if (name === '__proto__' || Object.hasOwn(mapping, name)) throw new RareSyntax('a faulty name');
      mapping[name] = readValue();
    }
    return mapping;
  }

  function readSequence(): unknown {
    const list: unknown[] = [];
    while (!ends()) {
      if (isEmpty(events[at])) throw new RareSyntax('an empty entry');
      list.push(readValue());
    }
    return list;
  }

  if (next().type !== EVENT_ID.DOCUMENT || events[at]?.type !== EVENT_ID.MAPPING) {
    throw new RareSyntax('a document that is no mapping');
  }
  const value = readValue();
  if (!ends() || at !== events.length) throw new RareSyntax('several documents');
  return value;
}

class RareSyntax extends Error {}

/**
 * Whether only spaces precede a key on its line. Dashes may also precede the first key of a mapping. `js-yaml` accepts some keys on the
 * line of another value.
 */
function startsLine(text: string, offset: number, isFirst: boolean): boolean {
  let at = offset - 1;
  while (text[at] === ' ' || (isFirst && text[at] === '-')) at -= 1;
  return at < 0 || text[at] === '\n' || text[at] === '\uFEFF';
}

/** Returns the text of a scalar. Throws an error if the two libraries may read the scalar differently. */
function readScalar(text: string, scalar: ScalarEvent): string {
  const { style, fast, valueStart, valueEnd } = scalar;
  if (style === SCALAR_STYLE.DOUBLE_QUOTED && !fast && /\\[\r\nU]/.test(text.slice(valueStart, valueEnd))) {
    throw new RareSyntax('an escaped line break or a long escape');
  }
  if (isBlockScalar(scalar)) {
    const header = text.slice(text.lastIndexOf('\n', valueStart - 2) + 1, valueStart);
    if (/[|>]-?[+0-9]/.test(header)) throw new RareSyntax('a text whose header has a digit or a plus sign');
  }
  return getScalarValue(text, scalar);
}

function isBlockScalar({ style }: ScalarEvent): boolean {
  return style === SCALAR_STYLE.LITERAL_BLOCK || style === SCALAR_STYLE.FOLDED_BLOCK;
}

/** Converts a scalar without quotes, by the core schema of YAML 1.2. The patterns are the patterns of `yaml`. */
function resolvePlain(text: string): unknown {
  if (!mayBeNoText.test(text)) return text;
  if (/^(?:~|[Nn]ull|NULL)?$/.test(text)) return null;
  if (/^(?:[Tt]rue|TRUE)$/.test(text)) return true;
  if (/^(?:[Ff]alse|FALSE)$/.test(text)) return false;
  if (/^[-+]?[0-9]+$/.test(text)) return Number.parseInt(text, 10);
  if (/^0o[0-7]+$/.test(text)) return Number.parseInt(text.slice(2), 8);
  if (/^0x[0-9a-fA-F]+$/.test(text)) return Number.parseInt(text.slice(2), 16);
  if (/^[-+]?(?:\.[0-9]+|[0-9]+\.[0-9]*)$/.test(text)) return Number.parseFloat(text);
  if (/^[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)[eE][-+]?[0-9]+$/.test(text)) return Number.parseFloat(text);
  if (/^\.(?:nan|NaN|NAN)$/.test(text)) return Number.NaN;
  if (/^[-+]?\.(?:inf|Inf|INF)$/.test(text)) return text.startsWith('-') ? -Infinity : Infinity;
  return text;
}

/** Matches every scalar that is a number, a boolean or null, and few other scalars. */
const mayBeNoText = /^(?:$|~|[-+.0-9]|[Nn](?:ull|ULL)|[Tt]rue|TRUE|[Ff]alse|FALSE)/;
