/**
 * Reads one entry of a keys file without the YAML library, which would take thirty times as long. This reader supports the usual YAML of
 * keys files: block mappings and lists, `{ }` and `[ ]` on one line, plain scalars, quoted scalars without escapes, and comments. For this
 * subset, the library has the same result (`/test/config/keys/split-keys.test.ts`). All other YAML, and text with variables, is left to the
 * library.
 *
 * @param text the lines of one entry; the first line begins with `- `
 * @returns undefined for an entry that needs the library
 */
export function readPlainEntry(text: string): { readonly value: unknown } | undefined {
  if (text.length > entryCharsMax || text.includes('${')) return undefined;
  try {
    return { value: new EntryReader(text).entry() };
  } catch (error) {
    if (error === unfamiliar) return undefined;
    throw error;
  }
}

/** The YAML library reads longer entries, and counts their tokens. */
const entryCharsMax = 4_096;
/** The nesting of `[[…]]` and `{ a: { … } }`. */
const flowDepthMax = 4;

const unfamiliar = Symbol('YAML that is left to the library');

type Mapping = Record<string, unknown>;

// Non-ASCII characters, except blanks and line breaks.
const letters = String.raw`\u00a1-\u167f\u1681-\u1fff\u2010-\u2027\u2030-\u205e\u2070-\u2fff\u3001-\ud7ff`;
const inBlock = `!-9;-~${letters}`;
const inFlow = String.raw`!-+\-./0-9;-Z\\^-z|~${letters}`;
/** Characters that may follow a blank in a scalar. `#` after a blank begins a comment. */
const behindBlank = (characters: string) => characters.replace('!', '!"$');

/** Sticky patterns match at the reader's current position. */
const sticky = {
  entry: /- +/y,
  blanks: / +/y,
  fieldName: /[A-Za-z][A-Za-z0-9]*:(?=[ \r\n]|$)/y,
  plainInBlock: plainScalar(inBlock),
  plainInFlow: plainScalar(inFlow),
  quoted: new RegExp(String.raw`"([ !#-\[\]-~${letters}]*)"|'([ -&(-~${letters}]*)'`, 'y'),
  lineEnd: /(?: +#[^\r\n]*| *)(?:\r?\n|$)/y,
  otherLines: /(?: *(?:#[^\r\n]*)?\r?\n)*(?: *(?:#[^\r\n]*)?$)?/y,
  separator: / *, */y,
};

/** An unquoted scalar. The first character cannot begin another YAML construct. A colon is never followed by a blank. */
function plainScalar(characters: string): RegExp {
  return new RegExp(
    `[A-Za-z0-9_/${letters}](?:[${characters}]|:(?=[${characters}])| +(?=[${behindBlank(characters)}]))*`,
    'y',
  );
}

class EntryReader {
  readonly #text: string;
  #at = 0;

  constructor(text: string) {
    this.#text = text;
  }

  entry(): unknown {
    const value = this.#item(this.#take(sticky.entry).length);
    if (this.#at !== this.#text.length) throw unfamiliar;
    return value;
  }

  /** The list item that follows `- `, with its further lines. */
  #item(column: number): unknown {
    sticky.fieldName.lastIndex = this.#at;
    return sticky.fieldName.test(this.#text) ? this.#mapping(column) : this.#valueOnLine();
  }

  /** A mapping whose field names begin at the given column. */
  #mapping(column: number): Mapping {
    const mapping: Mapping = {};
    for (;;) {
      const name = this.#take(sticky.fieldName).slice(0, -1);
      if (Object.hasOwn(mapping, name)) throw unfamiliar;
      mapping[name] = this.#fieldValue(column);
      const indent = this.#indent();
      if (indent < column) return mapping;
      if (indent > column) throw unfamiliar;
      this.#at += indent;
    }
  }

  #fieldValue(column: number): unknown {
    if (!this.#skip(sticky.lineEnd)) {
      this.#take(sticky.blanks);
      return this.#valueOnLine();
    }
    const indent = this.#indent();
    if (this.#text.startsWith('- ', this.#at + indent) && indent >= column) return this.#list(indent);
    if (indent <= column) throw unfamiliar;
    this.#at += indent;
    return this.#mapping(indent);
  }

  #list(column: number): unknown[] {
    const items: unknown[] = [];
    do {
      this.#at += column;
      items.push(this.#item(column + this.#take(sticky.entry).length));
    } while (this.#indent() === column && this.#text.startsWith('- ', this.#at + column));
    if (this.#indent() > column) throw unfamiliar;
    return items;
  }

  #valueOnLine(): unknown {
    const value = this.#value(sticky.plainInBlock, 0);
    this.#take(sticky.lineEnd);
    return value;
  }

  #value(plain: RegExp, depth: number): unknown {
    switch (this.#text[this.#at]) {
      case '{':
        return this.#flowMapping(depth + 1);
      case '[':
        return this.#flowList(depth + 1);
      case '"':
      case "'": {
        const [, double, single] = this.#need(sticky.quoted);
        return double ?? single;
      }
      default:
        return resolvePlain(this.#take(plain));
    }
  }

  #flowMapping(depth: number): Mapping {
    const mapping: Mapping = {};
    this.#flowItems('}', depth, () => {
      const name = this.#take(sticky.fieldName).slice(0, -1);
      this.#take(sticky.blanks);
      if (Object.hasOwn(mapping, name)) throw unfamiliar;
      mapping[name] = this.#value(sticky.plainInFlow, depth);
    });
    return mapping;
  }

  #flowList(depth: number): unknown[] {
    const items: unknown[] = [];
    this.#flowItems(']', depth, () => {
      // In YAML, `[a: 1]` is a list that contains a mapping.
      sticky.fieldName.lastIndex = this.#at;
      if (sticky.fieldName.test(this.#text)) throw unfamiliar;
      items.push(this.#value(sticky.plainInFlow, depth));
    });
    return items;
  }

  #flowItems(end: string, depth: number, readItem: () => void): void {
    if (depth > flowDepthMax) throw unfamiliar;
    this.#at += 1;
    this.#skip(sticky.blanks);
    if (this.#text[this.#at] !== end) {
      do readItem();
      while (this.#skip(sticky.separator));
      this.#skip(sticky.blanks);
    }
    if (this.#text[this.#at] !== end) throw unfamiliar;
    this.#at += 1;
  }

  /** Advances to the next line with content. Returns its indentation, or -1 at the end of the text. */
  #indent(): number {
    this.#skip(sticky.otherLines);
    if (this.#at === this.#text.length) return -1;
    let indent = 0;
    while (this.#text[this.#at + indent] === ' ') indent += 1;
    return indent;
  }

  /** Advances past the match of a pattern. Returns whether it matched. */
  #skip(pattern: RegExp): boolean {
    pattern.lastIndex = this.#at;
    if (!pattern.test(this.#text)) return false;
    this.#at = pattern.lastIndex;
    return true;
  }

  /** Returns the text that a pattern matches, and advances past it. */
  #take(pattern: RegExp): string {
    const start = this.#at;
    if (!this.#skip(pattern)) throw unfamiliar;
    return this.#text.slice(start, this.#at);
  }

  #need(pattern: RegExp): RegExpExecArray {
    pattern.lastIndex = this.#at;
    const match = pattern.exec(this.#text);
    if (match === null) throw unfamiliar;
    this.#at = pattern.lastIndex;
    return match;
  }
}

const wholeNumber = /^(?:0|[1-9]\d{0,14})$/;
/** Other numbers of YAML's core schema. */
const otherNumber = /^(?:\d+|0o[0-7]+|0x[\da-fA-F]+|\d+(?:\.\d*)?(?:[eE][-+]?\d+)?)$/;
const otherWord = /^(?:True|TRUE|False|FALSE|null|Null|NULL)$/;

function resolvePlain(text: string): unknown {
  if (text === 'true' || text === 'false') return text === 'true';
  if (wholeNumber.test(text)) return Number(text);
  if (otherNumber.test(text) || otherWord.test(text)) throw unfamiliar;
  return text;
}
