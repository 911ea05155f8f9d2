import { RateLimiterMemory } from 'rate-limiter-flexible';

/**
 * The library's limiter in memory with a limit on how many addresses it remembers, which the library has not. Beyond it,
 * the address that was counted first is forgotten. Somebody who guesses keys gains nothing by that: to have one address
 * forgotten, requests must come from that many others, each of which has an allowance of its own.
 */
export class BoundedLimiterMemory extends RateLimiterMemory {
  readonly #counted = new Set<string | number>();
  /** An iterator that stays open: a new one would step over the place of every entry that was deleted before. */
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
