import * as z from 'zod';
import { settingsSchema } from './settings-schema.ts';

/** The text of `config/tollgate.schema.json`, with which editors check and complete a configuration. */
export function settingsJsonSchema(): string {
  const schema = z.toJSONSchema(settingsSchema, {
    io: 'input',
    override: ({ jsonSchema }) => {
      const { type, description, default: fallback, ...rules } = jsonSchema;
      const isStrict =
        type === 'integer' || type === 'boolean' || (type === 'string' && Object.keys(rules).length > 0);
      if (!isStrict) return;
      // A variable (`${NAME}`) may stand in place of a value that must have a certain form.
      for (const name of Object.keys(jsonSchema)) delete jsonSchema[name];
      Object.assign(jsonSchema, {
        ...(description !== undefined && { description }),
        ...(fallback !== undefined && { default: fallback }),
        anyOf: [
          { type, ...rules },
          { type: 'string', pattern: '\\$\\{' },
        ],
      });
    },
  });
  return `${JSON.stringify({ title: 'Tollgate configuration', ...schema }, null, 2)}\n`;
}
