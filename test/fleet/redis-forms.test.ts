import { describe, expect, it, onTestFinished } from 'vitest';
import { createChanges } from '../../gateway/fleet/changes.ts';
import { createEvents } from '../../gateway/fleet/events.ts';
import { createPresence } from '../../gateway/fleet/presence.ts';
import { createFleetHealth } from '../../gateway/request/forward/upstream/fleet/fleet-health.ts';
import { connectRedis, removeAll } from '../support/connect-redis.ts';
import { processState } from '../support/process-state.ts';
import { freshPrefix } from '../support/redis.ts';
import { allRedisForms, startForm } from '../support/start-form.ts';
import { tunedBounds } from '../support/tuned-bounds.ts';
import { patientStore } from '../support/tuning.ts';

const bounds = tunedBounds({ ...patientStore, presenceIntervalMs: 20, healthCheckersPeriodMs: 2_000 });

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

  it('count each other, and agree that a target is failing', async () => {
    const records = await connectRedis({ prefix: freshPrefix(), place: place(), bounds });
    onTestFinished(() => removeAll(records));
    const targets = ['p1', 'p2', 'p3'].map((processId) => {
      const fleet = createFleetHealth({ records, processId, bounds });
      onTestFinished(fleet.close);
      return ['target', 'another target'].map((id) => fleet.join(id, () => {}))[0];
    });
    await expect.poll(() => targets.map((target) => target?.checkers())).toEqual([3, 3, 3]);
    for (const target of targets)
      target?.report({ health: 'down', reason: 'refused', atMs: performance.now() - 60_000 });
    await expect
      .poll(() => targets.map((target) => target?.opinion()?.kind))
      .toEqual(['failing', 'failing', 'failing']);
  });
});
