import type { Spread } from './statistics.ts';

export const seconds = (value: number) => value.toFixed(2);
export const times = (value: number) => `${value.toFixed(2)}×`;
export const ms = (us: number) => (us / 1000).toFixed(2);
export const whole = (value: number) => Math.round(value).toLocaleString('en');

export function spread({ median, min, max }: Spread, format: (value: number) => string): string {
  return `${format(median)} (${format(min)}–${format(max)})`;
}

export function table(head: readonly string[], rows: readonly (readonly string[])[]): string {
  const line = (cells: readonly string[]) => `| ${cells.join(' | ')} |`;
  return [line(head), line(head.map(() => '---')), ...rows.map(line)].join('\n');
}
