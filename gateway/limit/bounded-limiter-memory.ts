import { RateLimiterMemory } from 'rate-limiter-flexible';

/**
 * The library's counts in memory, which have no bound of their own: beyond ours the address that was counted first is
 * forgotten. To be counted anew, a guesser must send from as many other addresses, and has their room anyway.
 */
export class BoundedLimiterMemory extends RateLimiterMemory {
  readonly #counted = new Set<string | number>();
  /** Stays at the first of the set as that leaves; a new look for it would pass all that have left. */
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
