import * as z from 'zod';
import { components, instant, limitsByField } from '../../../keys/response-parts.ts';
import { defineWire } from '../../../shared/http/wire.ts';

export const retriedPlan = z
  .object({
    plan: z.string(),
    limits: limitsByField.describe('The limits of the edit, which apply again.'),
    revertedAt: instant
      .optional()
      .describe('The time of the revert that ended; absent if this process had not learnt of it.'),
  })
  .register(components, { id: 'RetriedPlan' });

export const retryPlanWire = defineWire({
  method: 'POST',
  path: '/plans/{name}/retry',
  operationId: 'retryPlan',
  tag: 'Configuration',
  summary: 'Let a reverted plan try its edit again',
  description:
    'Ends the revert of a plan in all gateways with this edit. The limits of the edit apply again, and the guard starts its watch from zero unless its `until` has passed.',
  params: { name: z.string().describe('The name of a plan.') },
  answers: { 200: { description: 'The plan tries its edit again.', schema: retriedPlan } },
});
