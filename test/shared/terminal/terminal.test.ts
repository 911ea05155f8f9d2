import { describe, expect, it } from 'vitest';
import { screenOf } from '../../../gateway/cli/output/screen.ts';
import { printable, printableJson, printableJsonText } from '../../../gateway/shared/terminal/printable.ts';
import { terminalOf } from '../../../gateway/shared/terminal/terminal.ts';
import { cutText, padText, widthOf, wrapText } from '../../../gateway/shared/terminal/text-width.ts';

describe('terminalOf', () => {
  const stream = { isTTY: true, columns: 120 };
  const usual = { TERM: 'xterm-256color' };

  it('is undefined without a terminal: for a pipe or a file', () => {
    expect(terminalOf({}, usual)).toBeUndefined();
  });

  it.each([
    [usual, true],
    [{ ...usual, NO_COLOR: '' }, true],
    [{ ...usual, NO_COLOR: '1' }, false],
    [{ ...usual, NO_COLOR: '0' }, false],
    [{ TERM: 'dumb' }, false],
    [{}, false],
  ])('with %j has colours: %s', (env, colours) => {
    expect(terminalOf(stream, env)).toMatchObject({ colours });
  });

  it('has the present width of the terminal, or 100 columns', () => {
    const resized = { isTTY: true, columns: 120 };
    const terminal = terminalOf(resized, usual);
    expect(terminal?.columns()).toBe(120);
    resized.columns = 80;
    expect(terminal?.columns()).toBe(80);
    expect(terminalOf({ isTTY: true, columns: 0 }, usual)?.columns()).toBe(100);
  });
});

describe('the size of the screen', () => {
  const terminal = { isTTY: true, columns: 120 };

  it.each([
    ['a pipe', {}, {}, Number.POSITIVE_INFINITY],
    ['a pipe with COLUMNS', {}, { COLUMNS: '80' }, 80],
    ['a terminal', terminal, {}, 120],
    ['a terminal with COLUMNS', terminal, { COLUMNS: '200' }, 200],
    ['a terminal that does not say how wide it is', { isTTY: true, columns: 0 }, {}, 100],
    ['a very narrow terminal', { isTTY: true, columns: 12 }, {}, 40],
    ['a terminal with a COLUMNS that is no width', terminal, { COLUMNS: '0' }, 120],
    ['a terminal with an empty COLUMNS', terminal, { COLUMNS: '' }, 120],
  ])('has the right columns: %s', (_, stream, env, columns) => {
    expect(screenOf(stream, { TERM: 'xterm', ...env }).columns).toBe(columns);
  });
});

describe('printable text', () => {
  it.each([
    ['\u001b[31mred', '\\u{1b}[31mred'],
    ['\u009b2J', '\\u{9b}2J'],
    ['bell\u0007 back\b', 'bell\\u{7} back\\u{8}'],
    ['a\r\nb\tc', 'a\\u{d}\nb c'],
    ['abc\u202edef\u2066', 'abc\\u{202e}def\\u{2066}'],
    ['tag\u{e0041}', 'tag\\u{e0041}'],
    ['half \ud800', 'half \\u{d800}'],
    ['Zoë 猫 👩‍👧', 'Zoë 猫 👩‍👧'],
  ])('%j is shown as %j', (text, shown) => {
    expect(printable(text)).toBe(shown);
  });

  it('covers every text of a JSON value, including names of members', () => {
    expect(printableJson({ 'a\u001b': ['\u0007', 1, null, { b: '\u009b' }] })).toEqual({
      'a\\u{1b}': ['\\u{7}', 1, null, { b: '\\u{9b}' }],
    });
  });

  it('has the same meaning as JSON, without control sequences of a terminal', () => {
    const value = { name: '\u001b[2J \u009b \u202e \u{e0041} \ud800 猫\n', list: [1, true] };
    const text = printableJsonText(value);
    expect(text).not.toMatch(/[^\P{C}\n]/u);
    expect(JSON.parse(text)).toEqual(value);
  });
});

describe('the width of text', () => {
  it.each([
    ['abc', 3],
    ['Zoë', 3],
    ['Zoe\u0308', 3],
    ['猫', 2],
    ['🐈', 2],
    ['', 0],
  ])('of %j is %i', (text, width) => {
    expect(widthOf(text)).toBe(width);
    expect(widthOf(padText(text, 10, 'left'))).toBe(10);
  });

  it.each([
    ['customer-0000123', 16, 'customer-0000123'],
    ['customer-0000123', 10, 'custo…0123'],
    ['猫猫猫猫', 5, '猫…猫'],
    ['猫猫猫猫', 4, '猫…'],
    ['abc', 1, '…'],
    ['abc', 0, ''],
  ])('%j in %i columns is %j', (text, columns, shown) => {
    expect(cutText(text, columns)).toBe(shown);
    expect(widthOf(shown)).toBeLessThanOrEqual(columns);
  });

  it('limits every line of a wrapped text, which keeps all its words', () => {
    const lines = wrapText('a sentence of several words,  and\nanother', 12);
    expect(lines).toEqual(['a sentence', 'of several', 'words, and', 'another']);
    expect(wrapText('unbreakable-word', 8)).toEqual(['unbr…ord']);
    expect(wrapText(' ', 8)).toEqual([]);
  });
});
