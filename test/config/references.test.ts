import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, it } from 'vitest';
import { generatedFiles } from '../../config/reference/generate/pages.ts';
import { kindsByType } from '../../gateway/fleet/kinds/kinds.ts';
import { webhookEventTypes } from '../../gateway/shared/words/event-names.js';

const folder = fileURLToPath(new URL('../../config/', import.meta.url));

it.each(Object.entries(generatedFiles))('config/%s is as `npm run references` writes it', (name, make) => {
  expect(readFileSync(join(folder, name), 'utf8')).toBe(make());
});

it('every page in config/reference/ is generated', () => {
  const pages = readdirSync(join(folder, 'reference')).filter((name) => name.endsWith('.md'));
  expect(pages.map((name) => `reference/${name}`).filter((name) => !(name in generatedFiles))).toEqual([]);
});

it('every type of webhook says when it is sent', () => {
  const silent = webhookEventTypes.filter((type) => !kindsByType.get(type)?.webhook?.when[type]);
  expect(silent).toEqual([]);
});
