import { settingsJsonSchema } from '../../../gateway/config/schema/settings-json-schema.ts';
import { adminApiPage } from './admin-api.ts';
import { commandLinePage } from './command-line.ts';
import { errorsPage } from './errors.ts';
import { eventsPage } from './events.ts';
import { metricsPage } from './metrics.ts';
import { redisKeysPage } from './redis-keys.ts';
import { settingsPage } from './settings.ts';

/** The generated files below `config/`, each with the function that makes its text. */
export const generatedFiles: Readonly<Record<string, () => string>> = {
  'tollgate.schema.json': settingsJsonSchema,
  'reference/settings.md': settingsPage,
  'reference/admin-api.md': adminApiPage,
  'reference/command-line.md': commandLinePage,
  'reference/errors.md': errorsPage,
  'reference/events.md': eventsPage,
  'reference/metrics.md': metricsPage,
  'reference/redis-keys.md': redisKeysPage,
};
