import fc from 'fast-check';
import { expect, test } from 'vitest';
import { figure, rate } from '../../../gateway/shared/words/figures.js';

const whole = new Intl.NumberFormat('en-US', { maximumFractionDigits: 0 });
const decimal = new Intl.NumberFormat('en-US', { minimumFractionDigits: 1, maximumFractionDigits: 1 });

test.each([
  [0, '0'],
  [999, '999'],
  [999.5, '1,000'],
  [1_234_567, '1,234,567'],
  [-5_000, '-5,000'],
  [999_999_999_999_999, '999,999,999,999,999'],
  [undefined, '–'],
])('the figure %s is %s', (number, text) => {
  expect(figure(number)).toBe(text);
});

test('numbers are rounded and separated as by Intl.NumberFormat', () => {
  const halves = fc.integer({ min: -2e9, max: 2e9 }).map((number) => number / 2 || 0);
  fc.assert(fc.property(halves, (number) => figure(number) === whole.format(number)));
  const twentieths = fc.integer({ min: 1, max: 199 }).map((number) => number / 20);
  fc.assert(fc.property(twentieths, (number) => rate(number) === decimal.format(number)));
});
