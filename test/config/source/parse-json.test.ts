import { expect, test } from 'vitest';
import { parseYaml } from '../../../gateway/config/source/parse-yaml.ts';

const parsed = (kind: 'api' | 'settings', text: string) => {
  const result = parseYaml({ file: 'a.json', kind, text });
  if (result.kind === 'invalid') throw new Error('the text is invalid');
  return result;
};

test('an API document in JSON has the same data and the same places as the same text in YAML', () => {
  const text = ' { "a": {"b": [1, {"c d\\n": "x\\"}"}, []], "e": null},\n "f" : "g" ,"\\u0068":{} }\n';
  // The comment makes the text YAML.
  const [json, yaml] = [parsed('api', text).source, parsed('api', `${text}# comment\n`).source];
  expect(json.value).toEqual(yaml.value);
  const deep = [
    ['a', 'b'],
    ['a', 'b', 0],
    ['a', 'b', 1, 'c d\n'],
    ['a', 'b', 2, 0],
    ['a', 'b', 9],
    ['a', 'x'],
  ];
  for (const path of [[], ['a'], ...deep, ['f'], ['f', 'q'], ['h'], ['h', 'z'], ['zz']]) {
    for (const part of ['name', 'value'] as const) {
      const { line, column } = yaml.placeOf(path, part);
      expect(json.placeOf(path, part), JSON.stringify(path)).toMatchObject({ line, column });
    }
  }
});

test.each([
  ['a name that occurs twice', '{"a": {"b": 1, "b": 2}}', 'this field occurs twice; keep one'],
  ['a reserved name', '{"\\u005f_proto__": 1}', expect.stringContaining('cannot be named `__proto__`')],
])('an API document in JSON with %s is refused', (_, text, message) => {
  expect(parsed('api', text).problems.map((problem) => problem.message)).toEqual([message]);
});

test('JSON that is nested too deeply is refused, and does not end the process', () => {
  const text = `{"a": ${'['.repeat(5_000)}${']'.repeat(5_000)}}`;
  expect(parseYaml({ file: 'a.json', kind: 'api', text })).toMatchObject({ kind: 'invalid' });
});

test('JSON with tabs, and with line breaks that YAML does not know, has the places of its text', () => {
  const text = '{\t"a": 1,\r "b": {\r\t"c": 2 }\r}';
  expect(parsed('api', text).source.placeOf(['b', 'c'])).toMatchObject({
    line: 1,
    column: text.indexOf('2') + 1,
  });
});
