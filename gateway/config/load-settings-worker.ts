/** The thread of `loadSettingsInWorker`: one load, one message. */
import { parentPort, workerData } from 'node:worker_threads';
import { loadSettings } from './load-settings.ts';

parentPort?.postMessage(loadSettings(workerData));
