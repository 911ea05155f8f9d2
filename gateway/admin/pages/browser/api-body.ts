import type * as z from 'zod';
import type { changesPage, eventsPage } from '../../api/fleet/changes-view.ts';
import type { deliveredEvent, deliveriesPage } from '../../wires/deliveries.ts';
import type { fleetState } from '../../wires/fleet.ts';
import type { deletedKey, issuedKey } from '../../wires/keys/definitions.ts';
import type { keyDetail } from '../../wires/keys/key.ts';
import type { keyPage } from '../../wires/keys/keys.ts';
import type { keyUsage, limitsSteps } from '../../wires/keys/usage.ts';
import type { callers, operationsPage, traffic } from '../../wires/operations.ts';
import type { planDistribution, plansPage, planTrial } from '../../wires/plans.ts';
import type { simulationShown } from '../../wires/simulation.ts';
import type { upstreamsPage } from '../../wires/upstreams.ts';

/**
 * The schema of each response that the pages read, by its path below `/api/v1`. If several patterns match a path, the
 * first pattern applies. For any other path, the type of the response is `never`.
 */
type Schemas = [
  ['/state', typeof fleetState],
  [`/traffic?${string}`, typeof traffic],
  [`/keys/${string}/usage?${string}`, typeof keyUsage],
  [`/keys/${string}/limits`, typeof limitsSteps],
  [`/keys/${string}`, typeof keyDetail],
  [`/keys${string}`, typeof keyPage],
  [`/plans/${string}/distribution`, typeof planDistribution],
  [`/plans/${string}/trial`, typeof planTrial],
  ['/plans', typeof plansPage],
  [`/operations/${string}/callers?${string}`, typeof callers],
  ['/operations', typeof operationsPage],
  ['/upstreams', typeof upstreamsPage],
  [`/events${string}`, typeof eventsPage],
  [`/changes${string}`, typeof changesPage],
  [`/deliveries/${string}`, typeof deliveredEvent],
  [`/deliveries${string}`, typeof deliveriesPage],
  ['/simulate', typeof simulationShown],
];

type SchemaOf<Path, All = Schemas> = All extends [[infer Pattern, infer Schema], ...infer Others]
  ? Path extends Pattern
    ? Schema
    : SchemaOf<Path, Others>
  : never;

export type BodyOf<Path extends string> = z.output<SchemaOf<Path>>;

/** A row of a response that has rows for minutes, hours or days. */
export type RowOf<Path extends string> =
  BodyOf<Path> extends { readonly rows: readonly (infer Row extends { readonly at: string })[] }
    ? Row
    : never;

/** Optional members of the response to a change of a key. */
export type Changed = Partial<Pick<z.output<typeof issuedKey>, 'secret'>> &
  Pick<z.output<typeof deletedKey>, 'kept'>;

export type State = BodyOf<'/state'>;
export type KeyWindow = BodyOf<'/keys'>['keys'][number]['windows'][number];

/** The last response of a polled path, and the last error. */
export interface Polled<Body = unknown> {
  /** The last received body; undefined before the first response. */
  readonly body: Body | undefined;
  /** The time at which the body arrived, on the clock of the browser's machine. */
  readonly atMs: number;
  /** The interval between requests. */
  readonly everyMs: number;
  /** The error of the last request; undefined after a successful request. */
  readonly error: { readonly status: number; readonly message: string } | undefined;
}
