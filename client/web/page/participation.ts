/** Taking part: visits to the server as long as the page is open. */

import type { Visit } from "../index.ts";
import type { PhoneError, PhoneLine } from "./phone_line.ts";

/** Most seconds between visits in a sitting, whose steps are short. */
const SITTING_PAUSE = 3;
/** The same after trouble with the server or the network, or a refusal by this phone. */
const TROUBLE_PAUSE = 30;
/** Seconds after which another tab's visit may have ended. */
const BUSY_PAUSE = 5;
/** Errors that end all visits, since only the phone's user can remove their cause. */
const LASTING = [
  "NotEnrolledError",
  "InvitationRefusedError",
  "LostStoreError",
  "LostLedgerError",
  "DamagedStoreError",
  "WrongKeyError",
  "UnsupportedBrowserError",
];

/** Outcome of a visit, or the error of this phone that prevented it. */
export interface Outcome extends Omit<Visit, "event"> {
  readonly event: Visit["event"] | "stopped";
  readonly error?: PhoneError;
}

/** Visits, one after the other. */
export class Participation {
  readonly #line: PhoneLine;
  readonly #tell: (outcome: Outcome, again: Date | null) => void;
  #isRunning = false;
  #isOver = false;
  #isSitting = false;
  #wake: (() => void) | null = null;
  #screen: WakeLockSentinel | null = null;

  /** `tell` is called after every visit, with the time of the next one; null for none. */
  constructor(line: PhoneLine, tell: (outcome: Outcome, again: Date | null) => void) {
    this.#line = line;
    this.#tell = tell;
    document.addEventListener("visibilitychange", () => void this.#keepScreenOn());
    addEventListener("online", () => this.#wake?.());
  }

  /** Whether the page visits every few seconds and keeps the screen on. */
  get isSitting(): boolean {
    return this.#isSitting;
  }

  /** Visit now and from now on, also after visits have stopped. */
  start(): void {
    this.#isOver = false;
    this.#wake?.();
    if (!this.#isRunning) void this.#run();
  }

  /** Stop visits until the next start; the outcome of one under way is not reported. */
  end(): void {
    this.#isOver = true;
  }

  /** Begin or end a sitting. */
  sit(isSitting: boolean): void {
    this.#isSitting = isSitting;
    void this.#keepScreenOn();
    this.start();
  }

  async #run(): Promise<void> {
    this.#isRunning = true;
    while (!this.#isOver) {
      const outcome = await this.#visited();
      if (this.#isOver) break;
      if (outcome.event === "stopped") {
        this.#tell(outcome, null);
        break;
      }
      const pause = 1000 * this.#pause(outcome);
      this.#tell(outcome, new Date(Date.now() + pause));
      await new Promise<void>((resolve) => {
        this.#wake = resolve;
        setTimeout(resolve, pause);
      });
    }
    this.#isRunning = false;
  }

  async #visited(): Promise<Outcome> {
    if (!navigator.onLine) {
      return { event: "trouble", detail: "no network", seconds: TROUBLE_PAUSE };
    }
    try {
      return await this.#line.ask("visit");
    } catch (error) {
      const failed = error as PhoneError;
      const { name, message: detail } = failed;
      if (name === "BusyError") return { event: "trouble", detail, seconds: BUSY_PAUSE };
      const event = LASTING.includes(name) ? "stopped" : "trouble";
      return { event, detail, seconds: TROUBLE_PAUSE, error: failed };
    }
  }

  /** Return the seconds until the next visit. */
  #pause({ event, seconds }: Outcome): number {
    if (!this.#isSitting) return seconds;
    const isQuiet = event === "trouble" || event === "refused";
    return Math.min(seconds, isQuiet ? TROUBLE_PAUSE : SITTING_PAUSE);
  }

  /** Keep the screen on in a sitting; browsers release the lock when the page is hidden. */
  async #keepScreenOn(): Promise<void> {
    try {
      await this.#screen?.release();
      this.#screen = null;
      if (this.#isSitting && !document.hidden) {
        this.#screen = await navigator.wakeLock.request("screen");
      }
    } catch {
      // Without the lock, users have to keep the screen on themselves.
    }
  }
}
