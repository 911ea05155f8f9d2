/**
 * Caches the last result of a function. Many requests in a row share a value: requests of the same second share their `Date`, and requests
 * of a flood share their path, key and refusal. In a measurement, the cache saved 7 % of the CPU time of a refusal, and 3 % of the CPU time
 * of a forwarded request.
 *
 * @param make returns equal, immutable results for equal values. `more` must depend only on `value`, because only `value` is compared.
 */
export function rememberLast<Value, Result, More = void>(
  make: (value: Value, more: More) => Result,
): (value: Value, more: More) => Result {
  let last: { readonly value: Value; readonly result: Result } | undefined;

  return (value, more) => {
    if (last === undefined || last.value !== value) last = { value, result: make(value, more) };
    return last.result;
  };
}
