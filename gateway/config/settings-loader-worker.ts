/** The thread of `createSettingsLoader`: a load for each message, a message for each load. */
import { parentPort } from 'node:worker_threads';
import { type LoadOptions, loadSettings } from './load-settings.ts';

parentPort?.on('message', (options: LoadOptions) => parentPort?.postMessage(loadSettings(options)));
