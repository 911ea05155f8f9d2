import type { Logger } from 'pino';
import type { Route } from '../../admin/api/route.ts';
import type { Change } from '../../fleet/changes.ts';
import type { Notice } from '../../fleet/kinds/kinds.ts';
import type { PartState } from '../../fleet/process-state.ts';
import type { Family } from '../../observe/metrics/metric-families.ts';
import type { Settings } from '../../shared/model.ts';
import type { processParts } from '../lists/running.ts';

/** The part of a capability that serves operators. Each member is optional. */
export interface OperatorsPart {
  readonly routes?: readonly Route[];
  readonly families?: readonly Family[];
  /** What the capability adds to the state of this gateway. */
  state?(): PartState;
  close?(): void;
}

/** The parts of capabilities in this process, by the name of the capability. */
export type Capabilities = {
  readonly [Name in keyof typeof processParts]: ReturnType<(typeof processParts)[Name]>;
};

export interface OperatorsSources {
  readonly settings: () => Settings;
  readonly recordChange: (change: Change) => void;
  readonly recordNotice: (notice: Notice) => void;
  readonly log: Logger;
}

export type OpenOperatorsPart = (capabilities: Capabilities, sources: OperatorsSources) => OperatorsPart;
