export class SigningClock {
    #clock;
    #ahead = 0;
    constructor(clock) {
        this.#clock = clock;
    }
    get created() {
        return Math.max(0, Math.floor(this.#clock() + this.#ahead));
    }
    correct(now) {
        this.#ahead = now - this.#clock();
    }
}
