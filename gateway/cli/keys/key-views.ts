import { counted, figure } from '../../shared/words/figures.js';
import { windowText } from '../../shared/words/limit-names.js';
import { clock, instant } from '../output/figures.ts';
import type { ChangedKey, IssuedKey } from './file/writable-keys.ts';

/** The text above a new secret. The text states where the key is stored, and when the key's older secrets expire. */
export function issuedText(
  { key, where, kept }: IssuedKey,
  { isNew }: { readonly isNew: boolean },
  nowMs: number,
): string {
  const option = key.source === 'file' ? '' : ' --directory';
  const sentences = [
    isNew ? `Added ${key.id} to ${where}.` : `${key.id} has one more secret, in ${where}.`,
    ...(isNew ? [] : [olderText(key.secrets.slice(0, -1), nowMs)]),
    ...(kept ? [`An earlier key with this id left this state: ${keptText(kept, nowMs)}.`] : []),
    ...(key.disabled ? [`It is revoked: "keys restore ${key.id}${option}" makes it valid again.`] : []),
    'This is the only time that the secret is shown:',
  ];
  return sentences.filter((sentence) => sentence !== '').join(' ');
}

function keptText({ windows = [], ban, grant }: NonNullable<IssuedKey['kept']>, nowMs: number): string {
  const used = windows.map(({ name, used }) => `${counted(used, 'used unit')} in this ${windowText(name)}`);
  const ends = ban ? [`a ban until ${clock(ban.untilMs, nowMs)} UTC`] : [];
  return [...used, ...ends, ...(grant ? ['a grant'] : [])].join(', ');
}

function olderText(older: ChangedKey['key']['secrets'], nowMs: number): string {
  if (older.length === 0) return '';
  const ends = older.map(({ expiresAt }) =>
    expiresAt === undefined ? Number.POSITIVE_INFINITY : Date.parse(expiresAt),
  );
  const valid = ends.filter((endMs) => endMs > nowMs);
  if (valid.length === 0) return 'No older secret is valid any more.';
  const many = `${counted(valid.length, 'older secret')} ${valid.length === 1 ? 'stays' : 'stay'} valid`;
  const endless = valid.filter((endMs) => endMs === Number.POSITIVE_INFINITY).length;
  if (endless === valid.length) return `${many} without an end.`;
  if (endless > 0) return `${many}, ${figure(endless)} without an end.`;
  const lastMs = Math.max(...valid);
  const atTheLatest = valid.some((endMs) => endMs < lastMs) ? ' at the latest' : '';
  return `${many} until ${instant(lastMs)} UTC${atTheLatest}.`;
}

export function editedText({ key, where, isChanged }: ChangedKey, nowMs: number): string {
  if (!isChanged) return `${key.id} is as wanted already, in ${where}: nothing was changed.`;
  const later = key.changes?.filter(({ from }) => Date.parse(from) > nowMs) ?? [];
  const plans = later.map(({ from, plan }) => ` From ${instant(from)} UTC on, it is on the plan ${plan}.`);
  const when = key.source === 'file' ? 'within 2 s' : 'from the next request on';
  return `${key.id} is edited, in ${where}. Every process knows this ${when}.${plans.join('')}`;
}

export function disabledText({ key, where, isChanged }: ChangedKey, nowMs: number): string {
  if (!isChanged) {
    const state = key.disabled ? 'was revoked already' : 'was not revoked';
    return `${key.id} ${state}, in ${where}: nothing was changed.`;
  }
  const isInFile = key.source === 'file';
  const option = isInFile ? '' : ' --directory';
  const when = isInFile ? 'within 2 s' : 'from the next request on, on every process';
  if (key.disabled) {
    return `${key.id} is revoked, in ${where}: all its requests are answered 401 ${when}. "keys restore ${key.id}${option}" undoes this.`;
  }
  const isValid = key.secrets.some(
    ({ expiresAt }) => expiresAt === undefined || Date.parse(expiresAt) > nowMs,
  );
  const rest = isValid
    ? ''
    : ` None of its ${figure(key.secrets.length)} secrets is valid: "keys rotate ${key.id}${option}" issues one.`;
  return `${key.id} is restored, in ${where}: it is served again within ${isInFile ? 2 : 1} s.${rest}`;
}
