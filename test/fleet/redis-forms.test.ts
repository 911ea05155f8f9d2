import { describe, expect, it, onTestFinished } from 'vitest';
import { createChanges } from '../../gateway/fleet/changes.ts';
import { createEvents } from '../../gateway/fleet/events.ts';
import { createPresence } from '../../gateway/fleet/presence.ts';
import { connectRedis, removeAll } from '../support/connect-redis.ts';
import { processState } from '../support/process-state.ts';
import { freshPrefix } from '../support/redis.ts';
import { allRedisForms, startForm } from '../support/start-form.ts';
import { tunedBounds } from '../support/tuned-bounds.ts';
import { patientStore } from '../support/tuning.ts';

const bounds = tunedBounds({ ...patientStore, presenceIntervalMs: 20 });

describe.each(allRedisForms)('processes that share Redis, $name,', (form) => {
  const place = startForm(form);

  it('list each other, and keep one entry for reports of the same event', async () => {
    const prefix = freshPrefix();
    const processes = await Promise.all(
      ['p1', 'p2'].map(async (processId) => {
        const records = await connectRedis({ prefix, place: place(), bounds });
        const presence = createPresence({ records, processId, own: () => [processState(processId)], bounds });
        const changes = createChanges({ records, processId, nowMs: Date.now, bounds });
        const events = createEvents({ records, processId, nowMs: Date.now, bounds });
        presence.start();
        onTestFinished(async () => {
          await Promise.all([presence.close(), changes.close(), events.close()]);
          await removeAll(records);
        });
        return { presence, changes, events };
      }),
    );
    const [first, second] = processes;
    if (!first || !second) throw new Error('two were made');
    for (const { changes, events } of processes) {
      changes.record({ action: 'reload', by: 'file', before: 'a', after: 'b' });
      events.record({ kind: 'reload', before: 'a', after: 'b', edits: [] });
    }
    await expect
      .poll(async () => (await second.presence.read()).processes.map(({ id }) => id))
      .toEqual(['p1', 'p2']);
    await expect
      .poll(async () => (await first.changes.read({ limit: 9 })).changes.map((one) => one.processes))
      .toEqual([2]);
    await expect
      .poll(async () => (await second.events.read({ limit: 9 })).events.map((one) => one.processes))
      .toEqual([2]);
  });
});
