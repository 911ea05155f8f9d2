/**
 * Caches the last result of a function. The cache helps if the same value repeats whatever key a request has: requests of the same second
 * share their `Date`, and refusals of the same plan share their body. Do not cache what depends on one key or decision. With 1,000 keys in
 * turn, such a cache made a refusal 5 % to 10 % slower.
 *
 * @param make returns equal, immutable results for equal values
 */
export function rememberLast<Value, Result>(make: (value: Value) => Result): (value: Value) => Result {
  let last: { readonly value: Value; readonly result: Result } | undefined;

  return (value) => {
    if (last === undefined || last.value !== value) last = { value, result: make(value) };
    return last.result;
  };
}
