import { expect, it } from 'vitest';
import { createAskSimulation } from '../../../../gateway/capabilities/simulate/commands/ask-simulation.ts';
import { noTotals } from '../../../../gateway/capabilities/simulate/replay/verdict.ts';
import type { AdminClient } from '../../../../gateway/cli/admin/admin-client.ts';

const simulation = {
  ...{ from: '2026-11-25T12:00:00.000Z', to: '2026-11-26T12:00:00.000Z', source: 'record', totals: noTotals },
  reproduced: { recordedRefusals: 0, replayedRefusals: 0, minutesThatDiffer: 0, differences: [] },
  ...{ plans: [], keys: [], moreKeys: 0, activeKeys: 0, examinedKeys: 0 },
};

it('a command with several simulations makes the processes send their counts once, before the first simulation', async () => {
  const asked: string[] = [];
  const ask = async ({ path }: { readonly path: string }) => {
    asked.push(path);
    return { body: path === '/flush' ? { isComplete: true, behind: [] } : simulation };
  };
  const client = { ask } as unknown as Pick<AdminClient, 'ask'>;
  const simulate = createAskSimulation(client, () => ({ show: () => {}, end: () => {} }));
  expect(asked).toEqual([]);
  await simulate({ plans: { free: { perMinute: 40 } } });
  await simulate({ plans: { pro: { perMinute: 400 } } });
  expect(asked).toEqual(['/flush', '/simulate', '/simulate']);
});
