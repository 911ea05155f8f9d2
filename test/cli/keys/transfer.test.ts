import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { configFolder, digestOf, mainDocument } from '../../support/config-folder.ts';
import { runTollgate } from '../../support/run-tollgate.ts';

const keys = `# The keys.
- id: acme # first
  plan: free
  name: 'Acme: "Ltd"'
  operations: [listPets]
  secrets:
    - { sha256: ${digestOf('a')}, created: 2026-01-01T12:00:00.500Z, expires: 2027-01-31 }
    - { sha256: ${digestOf('b')} }
- { id: big, plan: enterprise, limits: { perDay: 5, perMinute: 2 }, disabled: true, secrets: [] }
`;
const main = {
  'tollgate.yaml': mainDocument.replace('perDay: 1000 }', 'perDay: 1000, operations: [listPets, getPet] }'),
};

function run(file: string, args: string, stdin?: string) {
  return runTollgate(['keys', ...args.split(' ')], { TOLLGATE_CONFIG: file }, stdin);
}

async function exported(file: string): Promise<string> {
  const { exitCode, stdout, stderr } = await run(file, 'export');
  expect({ exitCode, stderr }).toEqual({ exitCode: 0, stderr: '' });
  return stdout;
}

test('an export that is imported into an empty file is the same, member by member', async () => {
  const from = configFolder({ ...main, 'keys.yaml': keys });
  const moved = await exported(from.file);
  expect(JSON.parse(moved).keys[0]).toEqual({
    ...{ id: 'acme', plan: 'free', name: 'Acme: "Ltd"', operations: ['listPets'], disabled: false },
    secrets: [
      {
        sha256: digestOf('a'),
        createdAt: '2026-01-01T12:00:00.500Z',
        expiresAt: '2027-01-31T00:00:00.000Z',
      },
      { sha256: digestOf('b') },
    ],
  });
  const to = configFolder({ ...main, 'keys.yaml': '# none\n' });
  const { exitCode, stdout } = await run(to.file, 'import -', moved);
  expect({ exitCode, stdout }).toEqual({
    exitCode: 0,
    stdout: `2 keys added to ${to.pathOf('keys.yaml')}\n`,
  });
  expect(await exported(to.file)).toBe(moved);
  to.write('saved.json', `\ufeff${moved}`);
  const saved = await run(to.file, `import ${to.pathOf('saved.json')}`);
  expect(saved.stdout).toBe(`0 keys added to ${to.pathOf('keys.yaml')}, 2 there already\n`);
  expect(readFileSync(to.pathOf('keys.yaml'), 'utf8')).toMatch(/^# none\n- id: acme\n/);
});

test('import leaves existing keys unchanged, and gives the reason for each key that it refuses', async () => {
  const { file, pathOf, write } = configFolder({ ...main, 'keys.yaml': keys });
  const { keys: all } = JSON.parse(await exported(file));
  const [acme, big] = all;
  const added = { id: 'new', plan: 'free', secrets: [{ sha256: digestOf('c') }] };
  const moved = [
    ...[acme, { ...big, name: 'Other' }, added, { ...added, disabled: false }],
    { ...added, id: 'plan', plan: 'gold' },
    { id: 'digest', plan: 'free', secrets: [{ sha256: digestOf('C') }] },
    { id: 'custom', plan: 'enterprise', secrets: [] },
    { id: 'limited', plan: 'free', limits: { perDay: 1 }, secrets: [] },
    { id: 'scoped', plan: 'free', operations: ['nothing'], secrets: [] },
  ];
  write('moved.json', JSON.stringify({ keys: moved }));
  const { exitCode, stdout } = await run(file, `import ${pathOf('moved.json')} --json`);
  expect(exitCode).toBe(1);
  expect(JSON.parse(stdout)).toEqual({
    created: 1,
    unchanged: 2,
    refused: [
      { id: 'big', reason: 'a different key with this id exists already' },
      { id: 'plan', reason: 'there is no plan gold' },
      { id: 'digest', reason: 'one of its secrets belongs to another key, or occurs twice' },
      { id: 'custom', reason: 'the plan enterprise is custom, and it has no limits of its own' },
      { id: 'limited', reason: 'it has limits of its own, and the plan free is not custom' },
      { id: 'scoped', reason: 'there is no operation nothing' },
    ],
  });
  const text = readFileSync(pathOf('keys.yaml'), 'utf8');
  expect(text).toBe(`${keys}- id: new\n  plan: free\n  secrets:\n    - sha256: ${digestOf('c')}\n`);
});

test('a key that the file defines in two ways is not imported, and both lines are named', async () => {
  const { file, pathOf, write } = configFolder({ ...main, 'keys.yaml': keys });
  write(
    'moved.json',
    `{"keys":[
{"id":"twice","plan":"free","name":"{\\"[","secrets":[]},
{"id":"same","plan":"free","operations":["listPets"],"secrets":[]},
{"id":"same","plan":"free","operations":["listPets","listPets"],"secrets":[]},

{"id":"twice","plan":"free","secrets":[]}, {"id":"twice","plan":"enterprise","secrets":[]}
]}
`,
  );
  const { exitCode, stdout } = await run(file, `import ${pathOf('moved.json')}`);
  expect({ exitCode, stdout }).toEqual({
    exitCode: 1,
    stdout: `1 key added to ${pathOf('keys.yaml')}, 1 there already, 1 refused:
  twice: it has two different definitions, in line 2 (\`keys[0]\`) and in line 6 (\`keys[3]\`); keep one of them
`,
  });
});

test('an operation that a key lists twice is written once, and this import can be repeated', async () => {
  const { file, pathOf } = configFolder({ ...main, 'keys.yaml': keys });
  const operations = ['getPet', 'listPets', 'getPet'];
  const moved = JSON.stringify({ keys: [{ id: 'scoped', plan: 'free', operations, secrets: [] }] });
  expect((await run(file, 'import -', moved)).exitCode).toBe(0);
  expect(JSON.parse(await exported(file)).keys.at(-1).operations).toEqual(['getPet', 'listPets']);
  const { exitCode, stdout } = await run(file, 'import -', moved);
  expect({ exitCode, stdout }).toEqual({
    exitCode: 0,
    stdout: `0 keys added to ${pathOf('keys.yaml')}, 1 there already\n`,
  });
});

test.each([
  ['no JSON', 'keys: []', 'is not JSON in the form of "keys export".'],
  ['other JSON', '{"keys":{}}', 'has no keys in the form of "keys export": `keys` must be a list of keys.'],
  ['a wrong id', '{"keys":[{"id":"a b","plan":"free","secrets":[]}]}', '`keys[0].id` must be 1 to 100 of'],
  ['a terminal escape', '{"keys":[],"\\u001b[2J":1}', 'this field is unknown'],
])('import of %s prints the problem, and writes nothing', async (_, text, message) => {
  const { file, pathOf, write } = configFolder({ ...main, 'keys.yaml': keys });
  write('moved.json', text);
  const { exitCode, stdout, stderr } = await run(file, `import ${pathOf('moved.json')}`);
  expect({ exitCode, stdout }).toEqual({ exitCode: 1, stdout: '' });
  expect(stderr).toContain(message);
  expect(stderr).not.toContain('\u001b');
  expect(readFileSync(pathOf('keys.yaml'), 'utf8')).toBe(keys);
});

test('a name that looks like a variable of the environment is not written into a configuration', async () => {
  const { file, pathOf } = configFolder({ ...main, 'keys.yaml': keys });
  const name = 'Acme ${TOLLGATE_CONFIG}';
  const moved = [
    { id: 'sly', plan: 'free', name, secrets: [] },
    { id: 'good', plan: 'free', secrets: [] },
  ];
  const { exitCode, stdout } = await run(file, 'import -', JSON.stringify({ keys: moved }));
  expect({ exitCode, stdout }).toEqual({
    exitCode: 1,
    stdout: `1 key added to ${pathOf('keys.yaml')}, 1 refused:
  sly: its name has \`\${\` in it, which a configuration replaces by a variable of the environment
`,
  });
  const before = readFileSync(pathOf('keys.yaml'), 'utf8');
  const created = await runTollgate(['keys', 'create', 'sly', '--plan', 'free', '--name', name], {
    TOLLGATE_CONFIG: file,
  });
  expect(created).toMatchObject({ exitCode: 1, stdout: '' });
  expect(created.stderr).toBe(
    '--name must not contain `${`, because a configuration replaces it by a variable of the environment.\n',
  );
  expect(readFileSync(pathOf('keys.yaml'), 'utf8')).toBe(before);
});
