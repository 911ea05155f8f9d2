import {
  getKeyForecastWire,
  getKeyUsageWire,
  type KeyForecast,
  type KeyUsage,
} from '../../../admin/wires/keys/usage.ts';
import { CommandError } from '../../output/command-error.ts';
import type { AdminClient, Reply } from '../admin-client.ts';
import type { Shift } from '../period.ts';
import { ofKey } from './read-key.ts';

type Client = Pick<AdminClient, 'ask'>;

/** The usage of a key, with the members that other responses add. */
export interface ReadUsage extends KeyUsage {
  /** The usage of an earlier period; absent if the command compares nothing. */
  readonly before?: KeyUsage;
  /** Absent if the key has no limit a month, or the gateway is of a version without forecasts. */
  readonly forecast?: KeyForecast;
}

interface UsageQuery {
  readonly from: string | undefined;
  readonly to: string | undefined;
  readonly step: string;
}

/** @param options.shift the distance of the earlier period; undefined: none is read */
export async function readUsage(
  client: Client,
  id: string,
  query: UsageQuery,
  { shift, withForecast, nowMs }: { shift: Shift | undefined; withForecast: boolean; nowMs: number },
): Promise<Reply<ReadUsage>> {
  const usageIn = (asked: UsageQuery) => client.ask(getKeyUsageWire, { params: { id }, query: { ...asked } });
  const [present, before, forecast] = await Promise.all([
    ofKey(client, id, () => usageIn(query)),
    shift && usageIn({ ...query, ...shift.periodBefore(query, nowMs) }).catch(noneIfRemoved),
    withForecast ? readForecast(client, id) : undefined,
  ]);
  const json = {
    ...Object(present.json),
    ...(before && { before: before.json }),
    ...(forecast && { forecast: forecast.json }),
  };
  const body = {
    ...present.body,
    ...(before && { before: before.body }),
    ...(forecast && { forecast: forecast.body }),
  };
  return { json, body };
}

async function readForecast(client: Client, id: string): Promise<Reply<KeyForecast> | undefined> {
  const reply = await client.ask(getKeyForecastWire, { params: { id } }).catch(noneIfRemoved);
  return reply?.body.limit === undefined ? undefined : reply;
}

/** A removed key has rows but no forecast, and it may have no rows in an earlier period. */
function noneIfRemoved(error: unknown): undefined {
  if (!(error instanceof CommandError && error.kind === 'not_found')) throw error;
}
