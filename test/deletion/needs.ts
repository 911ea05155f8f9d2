/** The capabilities that each capability imports. `architecture.test.ts` checks that the imports follow this table. */
export const needs: Readonly<Record<string, readonly string[]>> = { guard: ['simulate'] };

/** Files outside of the capabilities that only these capabilities use. They go with the last of them. */
export const usedOnlyBy: Readonly<Record<string, readonly string[]>> = {
  'gateway/shared/http/post-request.ts': ['otel', 'webhooks'],
  'gateway/shared/http/shared-lookup.ts': ['otel', 'webhooks'],
  'test/shared/http/shared-lookup.test.ts': ['otel', 'webhooks'],
};

/** Returns the capabilities that go together: the named capabilities, and all that need one of them, directly or indirectly. */
export function withDependents(names: readonly string[], table = needs): readonly string[] {
  const together = new Set(names);
  // The loop also visits the names that it adds.
  for (const name of together)
    for (const [dependent, needed] of Object.entries(table))
      if (needed.includes(name)) together.add(dependent);
  return [...together];
}
