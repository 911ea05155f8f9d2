/** The entry point of the thread that `createReadingThread` starts. */
import { constants, getPriority, platform, setPriority } from 'node:os';
import { parentPort, workerData } from 'node:worker_threads';
import { answerReading } from './answer-reading.ts';

/** A thread with this niceness gets a quarter of a CPU that it shares with one busy thread of niceness 0. */
const niceness = 5;

// On Linux each thread has its own niceness. The lower priority leaves a busy CPU to the threads that serve clients.
if (platform() === 'linux') {
  setPriority(0, Math.min(getPriority(0) + niceness, constants.priority.PRIORITY_LOW));
}

if (parentPort !== null) answerReading(parentPort, workerData);
