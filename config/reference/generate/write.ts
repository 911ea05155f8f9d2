/**
 * Writes the references and the JSON Schema of the configuration from the code: `npm run references`. `test/config/references.test.ts`
 * compares the files with the code.
 */
import { writeFileSync } from 'node:fs';
import { generatedFiles } from './pages.ts';

const folder = new URL('../../', import.meta.url);

for (const [name, make] of Object.entries(generatedFiles)) writeFileSync(new URL(name, folder), make());
