/** The server's clock, as far as a phone's signatures need it, and nothing else does. */

/** The present time by this phone's clock, corrected by what a server said of its own. */
export class SigningClock {
  readonly #clock: () => number;
  #ahead = 0;

  /** Take a clock of the seconds since 1970. */
  constructor(clock: () => number) {
    this.#clock = clock;
  }

  /** Whole seconds since 1970, for a signature. */
  get created(): number {
    return Math.max(0, Math.floor(this.#clock() + this.#ahead));
  }

  /** Go by a server's clock that reads `now`. */
  correct(now: number): void {
    this.#ahead = now - this.#clock();
  }
}
