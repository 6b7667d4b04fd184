const SITTING_PAUSE = 3;
const TROUBLE_PAUSE = 30;
const BUSY_PAUSE = 5;
export class Participation {
    #line;
    #tell;
    #isRunning = false;
    #isSitting = false;
    #wake = null;
    #screen = null;
    constructor(line, tell) {
        this.#line = line;
        this.#tell = tell;
        document.addEventListener("visibilitychange", () => void this.#keepScreenOn());
        addEventListener("online", () => this.#wake?.());
    }
    get isSitting() {
        return this.#isSitting;
    }
    start() {
        this.#wake?.();
        if (!this.#isRunning)
            void this.#run();
    }
    sit(isSitting) {
        this.#isSitting = isSitting;
        void this.#keepScreenOn();
        this.start();
    }
    async #run() {
        this.#isRunning = true;
        for (;;) {
            const outcome = await this.#visited();
            if (outcome.event === "stopped") {
                await this.#tell(outcome, null);
                break;
            }
            const pause = 1000 * this.#pause(outcome);
            await this.#tell(outcome, new Date(Date.now() + pause));
            await new Promise((resolve) => {
                this.#wake = resolve;
                setTimeout(resolve, pause);
            });
        }
        this.#isRunning = false;
    }
    async #visited() {
        if (!navigator.onLine) {
            return { event: "trouble", detail: "no network", seconds: TROUBLE_PAUSE };
        }
        try {
            return await this.#line.ask("visit");
        }
        catch (error) {
            const failed = error;
            if (failed.name !== "BusyError")
                return { event: "stopped", error: failed };
            return { event: "trouble", detail: failed.message, seconds: BUSY_PAUSE };
        }
    }
    #pause({ event, seconds }) {
        if (!this.#isSitting)
            return seconds;
        const isQuiet = event === "trouble" || event === "refused";
        return Math.min(seconds, isQuiet ? TROUBLE_PAUSE : SITTING_PAUSE);
    }
    async #keepScreenOn() {
        try {
            await this.#screen?.release();
            this.#screen = null;
            if (this.#isSitting && !document.hidden) {
                this.#screen = await navigator.wakeLock.request("screen");
            }
        }
        catch {
        }
    }
}
