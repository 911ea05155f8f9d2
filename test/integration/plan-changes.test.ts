import { it } from 'vitest';
import { plansChangeOnTheClockOfRedis } from './gateway-guarantees.ts';

it('every process changes the limits of a plan within one second of its date on the clock of Redis, and used requests still count', () =>
  plansChangeOnTheClockOfRedis());
