import { type Command, InvalidArgumentError } from 'commander';
import { type LimitField, limitFieldNames, limitFieldOf } from '../../keys/limits/limit-fields.ts';
import { type PlanWindow, planWindows } from '../../shared/model.ts';
import { wholeNumber } from '../command.ts';

export type StatedLimits<Limit> = { readonly [Field in LimitField]?: Limit | undefined };

/** `--per-minute` for `perMinute`. */
export function limitOption(field: LimitField): string {
  return `--${field.replace(/[A-Z]/, (letter) => `-${letter.toLowerCase()}`)}`;
}

export function addLimitOptions(
  command: Command,
  describe: (window: PlanWindow) => string,
  parse: (text: string) => unknown = wholeNumber,
): void {
  for (const window of planWindows) {
    command.option(`${limitOption(limitFieldOf[window])} <count>`, describe(window), parse);
  }
}

/**
 * An option with this value removes a limit. The type `LimitEdits` uses null for this purpose, but commander treats null from an option's parser
 * as a missing value.
 */
export const noLimit = 'none';

export function limitOrNone(text: string): number | typeof noLimit {
  if (text === noLimit) return noLimit;
  if (!/^\d{1,15}$/.test(text)) throw new InvalidArgumentError('It must be a whole number, or none.');
  return Number(text);
}

/** Returns the limits of the command line, or undefined if the command line states no limits. */
export function limitsOf<Limit = number>(
  options: StatedLimits<Limit>,
): { readonly [Field in LimitField]?: Limit } | undefined {
  const stated = limitFieldNames.filter((field) => options[field] !== undefined);
  return stated.length === 0 ? undefined : Object.fromEntries(stated.map((field) => [field, options[field]]));
}
