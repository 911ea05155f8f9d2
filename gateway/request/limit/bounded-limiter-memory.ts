import { RateLimiterMemory } from 'rate-limiter-flexible';

/**
 * The library's limiter in memory, with a bound on the number of remembered addresses, which the library lacks. At the bound, the
 * address that was counted first is forgotten. A client that guesses keys gains nothing: to make the limiter forget one address, it
 * needs requests from as many other addresses, and each address has its own limit.
 */
export class BoundedLimiterMemory extends RateLimiterMemory {
  readonly #counted = new Set<string | number>();
  /** An iterator that stays open, because a new iterator would step over every deleted entry again. */
  readonly #firstCounted = this.#counted.values();

  readonly #groupsMax: number;

  constructor(options: ConstructorParameters<typeof RateLimiterMemory>[0], groupsMax: number) {
    super(options);
    this.#groupsMax = groupsMax;
  }

  override consume(
    ...args: Parameters<RateLimiterMemory['consume']>
  ): ReturnType<RateLimiterMemory['consume']> {
    this.#makeRoomFor(args[0]);
    return super.consume(...args);
  }

  #makeRoomFor(group: string | number): void {
    if (this.#counted.has(group)) return;
    if (this.#counted.size === this.#groupsMax) {
      const first = this.#firstCounted.next();
      if (!first.done) {
        this.#counted.delete(first.value);
        void this.delete(first.value);
      }
    }
    this.#counted.add(group);
  }
}
