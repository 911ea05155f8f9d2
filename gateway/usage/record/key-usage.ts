import { groupNames } from '../../shared/limits.ts';
import type { Decision } from '../../shared/model.ts';
import type { Bounds } from '../../shared/timeouts-and-sizes.ts';
import { countInGroup } from '../groups.ts';
import { MinuteFigures } from '../minute-figures.ts';
import {
  addressesField,
  admittedNumber,
  type Bucket,
  clientErrorsNumber,
  extraUnitsNumber,
  failedField,
  failedGroupsNumber,
  failedHourNumber,
  failedNumber,
  freeNumber,
  groupHourField,
  hoursField,
  invalidSecretField,
  invalidSecretNumber,
  networkField,
  offeredNumber,
  operationField,
  outcomesField,
  refusalField,
  refusedNumber,
  requestsNumber,
  secretField,
  serverErrorsNumber,
  trialField,
  unauthorizedField,
  unauthorizedNumber,
  unitsField,
  withCosts,
} from '../record-fields.ts';
import { latest } from '../store/counts.ts';
import { firstOutcomes, laterNumber, outcomes, tallyNumber, unitsNumber } from '../tally.ts';
import { refusedNowFigure, trialFigure } from '../trial.ts';
import { UnsentCounts, type UnsentRoom } from '../unsent-counts.ts';
import { hourOfDay, minuteOfHour, minutesField, type UsageCalendar } from '../usage-calendar.ts';
import { addressBit, addressBits } from './address-estimate.ts';

/** The number of the outcome `admitted`. */
const admitted = 0;

/** The name under which further operations, networks and upstreams are counted together. */
export const others = '*';

interface OperationCounts {
  readonly id: string;
  requests: number;
  clientErrors: number;
  serverErrors: number;
  lastMs: number;
}

interface KeyUsageDeps {
  readonly calendar: UsageCalendar;
  readonly room: UnsentRoom;
  readonly bounds: Pick<
    Bounds,
    | 'usageOperationsPerKeyMax'
    | 'usageSecretsPerKeyMax'
    | 'usageNetworksPerKeyMax'
    | 'usageUpstreamsPerKeyMax'
    | 'usageTrialsPerKeyMax'
    | 'usageGroupsPerKeyMax'
  >;
}

export interface FailedCharge {
  readonly charged: readonly { readonly bucket: Bucket; readonly units: number }[];
  /** The upstream of the operation; undefined if the request was not meant for an upstream. */
  readonly upstream: string | undefined;
}

interface SecretUse {
  readonly digestStart: string;
  /** The last use of the secret; 0 when it was not used since the last write. */
  lastMs: number;
}

/** A placeholder for all secrets beyond `usageSecretsPerKeyMax`, whose content no code reads. */
const otherSecrets: SecretUse = { digestStart: '', lastMs: 0 };

/**
 * The requests of one key since the last batch. The counts of the current minute, and of the operations in the current hour, are plain
 * numbers. Counting a request therefore takes only a few additions. The counts of the minute and the hour move into `unsent` when the
 * minute or hour ends, or when the record is read. The class is long because all counts of a key move into `unsent` together.
 */
export class KeyUsage {
  readonly keyId: string;
  readonly unsent: UnsentCounts;
  private readonly calendar: UsageCalendar;
  private readonly room: UnsentRoom;
  private readonly bounds: KeyUsageDeps['bounds'];
  /** The time of the key's last decision, on the store's clock. */
  lastSeenMs = 0;
  private minute = -1;
  private minuteEndsMs = 0;
  private readonly byOutcome = Array<number>(outcomes.length).fill(0);
  /** The extra units by outcome; undefined while every request has cost 1 unit. */
  private extraUnits: number[] | undefined;
  private freeRequests: number[] | undefined;
  /** The decisions of the current trial of the key's plan; undefined while no trial has decided a request. */
  private trial: { readonly name: string; readonly figures: MinuteFigures } | undefined;
  /** The decisions on requests of each group; undefined while there was none today. */
  private groups: Map<string, MinuteFigures> | undefined;
  /** The number of trials that this process has recorded on a day (`trialsDay`). */
  private trials = 0;
  private trialsDay = -1;
  private hour = -1;
  /** The operations that have their own field in today's record. */
  private readonly operations = new Map<string, OperationCounts>();
  private lastOperation: OperationCounts | undefined;
  /** The secrets that were used today. */
  private readonly secrets = new Map<string, SecretUse>();
  private lastSecret: SecretUse = otherSecrets;
  /** The names with fields of their own. Most keys have no such names. */
  private invalidSecrets: NamesOfDay | undefined;
  private networks: NamesOfDay | undefined;
  private failedUpstreams: NamesOfDay | undefined;
  private lastAddress = '';
  private addressesDay = -1;
  /** The bit of today's first address in the bitmap. */
  private firstAddressBit = -1;
  /** The bitmap of today's addresses, which is created when the second address is counted. The size of the bitmap is fixed. */
  private addressesSeen: Uint8Array | undefined;

  constructor(keyId: string, { calendar, room, bounds }: KeyUsageDeps) {
    this.keyId = keyId;
    this.calendar = calendar;
    this.room = room;
    this.bounds = bounds;
    this.unsent = new UnsentCounts(room);
  }

  /**
   * @param units what the request costs
   * @param atMs when it was decided, on the deciding clock
   * @param secret the first digits of the digest of the secret that was presented
   */
  decided(outcome: number, units: number, atMs: number, address: string, secret: string): void {
    if (atMs >= this.minuteEndsMs || atMs < this.minuteEndsMs - this.calendar.minuteMs) this.openMinute(atMs);
    this.byOutcome[outcome] = (this.byOutcome[outcome] ?? 0) + 1;
    // Each outcome after the eighth is a refusal that no simulation replays, so its units are not needed.
    if (units !== 1 && outcome < firstOutcomes) this.countUnits(outcome, units);
    if (atMs > this.lastSeenMs) this.lastSeenMs = atMs;
    if (address !== this.lastAddress) this.see(address);
    if (secret !== this.lastSecret.digestStart) this.lastSecret = this.useOf(secret);
    if (atMs > this.lastSecret.lastMs) this.lastSecret.lastMs = atMs;
  }

  /**
   * Counts what the trial decided on the request of the preceding call of `decided`.
   *
   * @param trial the name of the trial (`trialName`)
   * @param outcome the outcome that the trial decided
   * @param isRefusedNow whether the plan itself refused the request
   */
  decidedByTrial(trial: string, outcome: number, isRefusedNow: boolean): void {
    if (this.trial?.name !== trial) {
      this.trial?.figures.close(this.minute, this.calendar, this.unsent);
      const figures = new MinuteFigures((hour) => trialField(hour, trial));
      this.trial = this.mayRecordTrial() ? { name: trial, figures } : undefined;
    }
    this.trial?.figures.add(trialFigure(outcome));
    if (isRefusedNow) this.trial?.figures.add(refusedNowFigure);
  }

  /** Counts the request of the preceding call of `decided` in the groups that have its operation. */
  decidedInGroups(decision: Decision): void {
    this.groups ??= new Map();
    for (const name of groupNames(decision.rateLimit.windows)) {
      let figures = this.groups.get(name);
      if (figures === undefined) {
        if (this.groups.size >= this.bounds.usageGroupsPerKeyMax) continue;
        figures = new MinuteFigures((hour) => groupHourField(name, hour));
        this.groups.set(name, figures);
      }
      countInGroup(figures, name, decision);
    }
  }

  private mayRecordTrial(): boolean {
    const { minuteMs, dayMs } = this.calendar;
    const day = Math.floor((this.minute * minuteMs) / dayMs);
    if (day !== this.trialsDay) this.trials = 0;
    this.trialsDay = day;
    if (this.trials >= this.bounds.usageTrialsPerKeyMax) return false;
    this.trials += 1;
    return true;
  }

  /**
   * Counts a request with an invalid secret of this key: the key is disabled, or the secret has expired. The request is not
   * charged to the key's limits.
   */
  unauthorized(atMs: number, secret: string): void {
    const { minuteMs, hourMs, dayMs } = this.calendar;
    const day = Math.floor(atMs / dayMs);
    const field = unauthorizedField(Math.floor(atMs / hourMs));
    if (!this.unsent.add(day, field, unauthorizedNumber(Math.floor(atMs / minuteMs)), 1)) return;
    this.invalidSecrets ??= new NamesOfDay();
    if (!this.invalidSecrets.add(secret, day, this.bounds.usageSecretsPerKeyMax)) return;
    this.unsent.add(day, invalidSecretField(secret), latest, atMs - day * dayMs);
    this.unsent.add(day, invalidSecretField(secret), invalidSecretNumber, 1);
  }

  /**
   * Counts a request from an address that the key does not allow. The request is not charged to the key's limits, and
   * does not count as a use of the key.
   */
  refusedAddress(atMs: number, network: string): void {
    const { hourMs, dayMs } = this.calendar;
    const day = Math.floor(atMs / dayMs);
    this.networks ??= new NamesOfDay();
    const isNamed = this.networks.add(network, day, this.bounds.usageNetworksPerKeyMax);
    const field = networkField(isNamed ? network : others);
    if (!this.unsent.add(day, field, refusedNumber(hourOfDay(Math.floor(atMs / hourMs))), 1)) return;
    this.unsent.add(day, field, latest, atMs - day * dayMs);
  }

  /**
   * Counts the units of a failed request.
   *
   * @param atMs the time of the decision, because the units were charged in the windows of this time
   */
  failed(atMs: number, { charged, upstream }: FailedCharge): void {
    const { minuteMs, hourMs, dayMs } = this.calendar;
    const day = Math.floor(atMs / dayMs);
    const hour = Math.floor(atMs / hourMs);
    this.failedUpstreams ??= new NamesOfDay();
    const { usageUpstreamsPerKeyMax: max } = this.bounds;
    const isNamed = upstream !== undefined && this.failedUpstreams.add(upstream, day, max);
    const number = failedNumber(Math.floor(atMs / minuteMs));
    for (const { bucket, units } of charged) {
      const field = failedField(hour, isNamed ? upstream : others, bucket);
      const isAdded = this.unsent.add(day, field, number, units);
      if (!isAdded || bucket === 'trial') continue;
      const sum = bucket === 'plan' ? failedHourNumber(hour) : failedGroupsNumber(hour);
      this.unsent.add(day, hoursField, sum, units);
    }
  }

  ended(operationId: string, atMs: number, status: number, countedAs?: string): void {
    const hour = Math.floor(atMs / this.calendar.hourMs);
    if (hour !== this.hour) {
      this.closeOperations();
      this.hour = hour;
    }
    let counts = this.lastOperation;
    if (counts?.id !== operationId) {
      const id = this.nameOf(operationId);
      counts = this.operations.get(id);
      if (counts === undefined) {
        counts = { id, requests: 0, clientErrors: 0, serverErrors: 0, lastMs: 0 };
        this.operations.set(id, counts);
      }
      this.lastOperation = counts;
    }
    counts.requests += 1;
    if (status >= 500) counts.serverErrors += 1;
    else if (status >= 400) counts.clientErrors += 1;
    if (atMs > counts.lastMs) counts.lastMs = atMs;
    if (countedAs !== undefined) this.refusal(countedAs, counts.id, atMs);
  }

  private refusal(name: string, operationId: string, atMs: number): void {
    const { hourMs, dayMs } = this.calendar;
    const day = Math.floor(atMs / dayMs);
    const number = refusedNumber(hourOfDay(Math.floor(atMs / hourMs)));
    const field = refusalField(name, operationId);
    if (!this.unsent.add(day, field, number, 1)) return;
    this.unsent.add(day, field, latest, atMs - day * dayMs);
  }

  /** Moves the counts of the current minute and hour into `unsent`. */
  close(): void {
    this.closeMinute();
    this.closeOperations();
  }

  private openMinute(atMs: number): void {
    this.closeMinute();
    const { minuteMs, dayMs } = this.calendar;
    this.minute = Math.floor(atMs / minuteMs);
    this.minuteEndsMs = (this.minute + 1) * minuteMs;
    const day = Math.floor(atMs / dayMs);
    if (day === this.addressesDay) return;
    this.addressesDay = day;
    this.firstAddressBit = -1;
    this.addressesSeen = undefined;
    this.lastAddress = '';
    this.closeOperations();
    this.operations.clear();
    this.lastOperation = undefined;
    this.secrets.clear();
    this.lastSecret = otherSecrets;
    this.groups = undefined;
  }

  private closeMinute(): void {
    const { minuteMs, hourMs, dayMs } = this.calendar;
    const startMs = this.minute * minuteMs;
    const day = Math.floor(startMs / dayMs);
    const hour = Math.floor(startMs / hourMs);
    let offered = 0;
    for (let outcome = 0; outcome < outcomes.length; outcome++) {
      const requests = this.byOutcome[outcome] ?? 0;
      if (requests === 0) continue;
      this.byOutcome[outcome] = 0;
      const place = minuteOfHour(this.minute);
      const isAdded =
        outcome < firstOutcomes
          ? this.unsent.add(day, minutesField(hour), tallyNumber(place, outcome), requests)
          : this.unsent.add(day, outcomesField(hour), laterNumber(place, outcome), requests);
      if (!isAdded) {
        this.room.lost += requests;
        continue;
      }
      this.closeUnits(day, hour, outcome);
      offered += requests;
      if (outcome === admitted) this.unsent.add(day, hoursField, admittedNumber(hourOfDay(hour)), requests);
    }
    if (this.extraUnits !== undefined && offered > 0) this.unsent.add(day, hoursField, withCosts, 1);
    this.extraUnits = undefined;
    this.freeRequests = undefined;
    this.trial?.figures.close(this.minute, this.calendar, this.unsent);
    for (const figures of this.groups?.values() ?? []) figures.close(this.minute, this.calendar, this.unsent);
    if (offered === 0) return;
    this.unsent.add(day, hoursField, offeredNumber(hourOfDay(hour)), offered);
    // A later minute of this day may already have been counted. The record keeps the latest timestamp.
    const lastMs = Math.min(this.lastSeenMs, startMs + minuteMs - 1);
    this.unsent.add(day, hoursField, latest, lastMs - day * dayMs);
    for (const use of this.secrets.values()) {
      if (use.lastMs === 0) continue;
      this.unsent.add(day, secretField(use.digestStart), latest, use.lastMs - day * dayMs);
      use.lastMs = 0;
    }
  }

  private countUnits(outcome: number, units: number): void {
    this.extraUnits ??= Array<number>(outcomes.length).fill(0);
    this.freeRequests ??= Array<number>(outcomes.length).fill(0);
    if (units === 0) this.freeRequests[outcome] = (this.freeRequests[outcome] ?? 0) + 1;
    else this.extraUnits[outcome] = (this.extraUnits[outcome] ?? 0) + units - 1;
  }

  /**
   * Adds the costs of the minute to the unsent counts. If there is no room for the costs, each request is recorded as a
   * request of 1 unit.
   */
  private closeUnits(day: number, hour: number, outcome: number): void {
    const numbers = unitsNumber(minuteOfHour(this.minute), outcome);
    const extraUnits = this.extraUnits?.[outcome] ?? 0;
    const free = this.freeRequests?.[outcome] ?? 0;
    const place = hourOfDay(hour);
    if (extraUnits > 0) this.unsent.add(day, unitsField(hour), numbers.extra, extraUnits);
    if (free > 0) this.unsent.add(day, unitsField(hour), numbers.free, free);
    if (outcome !== admitted) return;
    if (extraUnits > 0) this.unsent.add(day, hoursField, extraUnitsNumber(place), extraUnits);
    if (free > 0) this.unsent.add(day, hoursField, freeNumber(place), free);
  }

  private closeOperations(): void {
    const { hourMs, dayMs } = this.calendar;
    const day = Math.floor((this.hour * hourMs) / dayMs);
    const place = hourOfDay(this.hour);
    for (const counts of this.operations.values()) {
      const { id, requests, clientErrors, serverErrors, lastMs } = counts;
      if (requests === 0) continue;
      const field = operationField(id);
      this.unsent.add(day, field, requestsNumber(place), requests);
      if (clientErrors > 0) this.unsent.add(day, field, clientErrorsNumber(place), clientErrors);
      if (serverErrors > 0) this.unsent.add(day, field, serverErrorsNumber(place), serverErrors);
      this.unsent.add(day, field, latest, lastMs - day * dayMs);
      counts.requests = 0;
      counts.clientErrors = 0;
      counts.serverErrors = 0;
      counts.lastMs = 0;
    }
  }

  private nameOf(operationId: string): string {
    const isNamed =
      this.operations.has(operationId) || this.operations.size < this.bounds.usageOperationsPerKeyMax;
    return isNamed ? operationId : others;
  }

  private useOf(digestStart: string): SecretUse {
    const known = this.secrets.get(digestStart);
    if (known !== undefined) return known;
    if (this.secrets.size >= this.bounds.usageSecretsPerKeyMax) return otherSecrets;
    const use = { digestStart, lastMs: 0 };
    this.secrets.set(digestStart, use);
    return use;
  }

  private see(address: string): void {
    this.lastAddress = address;
    const bit = addressBit(address);
    if (bit === this.firstAddressBit || hasBit(this.addressesSeen, bit)) return;
    if (!this.unsent.add(this.addressesDay, addressesField, 1 + bit, 1)) return;
    if (this.firstAddressBit === -1) {
      this.firstAddressBit = bit;
      return;
    }
    this.addressesSeen ??= new Uint8Array(addressBits / 8);
    setBit(this.addressesSeen, bit);
  }
}

/** The names that have a field of their own in the record of a day, such as the networks of refused addresses. */
export class NamesOfDay {
  private readonly names = new Set<string>();
  private day = -1;

  /** Adds the name if the day has fewer than `max` names. @returns whether the name is one of the names of the day */
  add(name: string, day: number, max: number): boolean {
    if (day !== this.day) this.names.clear();
    this.day = day;
    if (this.names.size < max) this.names.add(name);
    return this.names.has(name);
  }
}

function hasBit(bits: Uint8Array | undefined, bit: number): boolean {
  return ((bits?.[bit >> 3] ?? 0) & (1 << (bit & 7))) !== 0;
}

function setBit(bits: Uint8Array, bit: number): void {
  bits[bit >> 3] = (bits[bit >> 3] ?? 0) | (1 << (bit & 7));
}
