import type { OperationCallers, OperationSunset } from '../../../fleet/kinds/operations.ts';
import type { Operation, Settings } from '../../../shared/model.ts';
import { nearestMark, type ScanPeriod } from './marks.ts';

/** Receivers get an event this number of days before the sunset of an operation. */
const sunsetMarks = [30, 7, 1];

/** @returns undefined if no usage is recorded, or if the usage record could not be read */
export type ReadCallers = (operationId: string) => Promise<OperationCallers | undefined>;

/** Finds the operations whose sunset has reached a mark. */
export async function* sunsetOperations(
  { operations, basePath }: Pick<Settings, 'operations' | 'basePath'>,
  readCallers: ReadCallers,
  period: ScanPeriod,
): AsyncGenerator<OperationSunset> {
  for (const operation of operations) {
    const { sunsetMs, successor, afterSunset = 'gone' } = operation.deprecation ?? {};
    const days = sunsetMs === undefined ? undefined : nearestMark(sunsetMarks, sunsetMs, period);
    if (sunsetMs === undefined || days === undefined) continue;
    yield {
      kind: 'operation_sunset',
      operation: operation.id,
      method: operation.method,
      path: pathOf(basePath, operation),
      sunsetMs,
      afterSunset,
      days,
      successor: successor === undefined ? undefined : `${basePath}${successor}`,
      called: await readCallers(operation.id),
    };
  }
}

function pathOf(basePath: string, { template }: Operation): string {
  return `${basePath}${template}`;
}
