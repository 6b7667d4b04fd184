/** The server's clock, which only a phone's signatures use. */

/** The phone's clock, corrected by the server's. */
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

  /** Correct the clock to a server's, which reads `now`. */
  correct(now: number): void {
    this.#ahead = now - this.#clock();
  }
}
