/** The page's line to its phone, which runs in a worker. */

import type { Asked, Told, Work } from "./worker.ts";
import { ownScript } from "./scripts.ts";

/** Milliseconds to wait for an answer: more than the 30 s that a call may wait for its turn. */
const PATIENCE = 60_000;
/** The same for calls that load a file or retry requests to a server. */
const LONGER: Partial<Record<keyof Work, number>> = {
  open: 5 * 60_000,
  visit: 30 * 60_000,
  leave: 30 * 60_000,
};

/** An error of the phone, with the name of its class; `PageError` for the page's own scripts. */
export class PhoneError extends Error {
  constructor(name: string | null, message: string) {
    super(message);
    this.name = name ?? "PageError";
  }
}

/** A worker that holds the phone; replaced if it does not load or does not answer. */
export class PhoneLine {
  readonly #waiting = new Map<number, (told: Told) => void>();
  #worker: Worker | null = null;
  #opening: Parameters<Work["open"]> | null = null;
  #opened: Promise<unknown> | null = null;
  #number = 0;

  /** Set how the phone is opened before the next call; later calls retry a failure. */
  open(...given: Parameters<Work["open"]>): void {
    this.#opening = given;
    this.#opened = null;
  }

  /** Call the phone; throws `PhoneError` with the name of the phone's error. */
  async ask<N extends keyof Work>(
    name: N,
    ...given: Parameters<Work[N]>
  ): Promise<Awaited<ReturnType<Work[N]>>> {
    // Also a phone that cannot be opened can be erased.
    if (name !== "erase") await this.#open();
    return this.#told(name, given);
  }

  async #open(): Promise<void> {
    const opened = (this.#opened ??= this.#told("open", this.#opening!));
    try {
      await opened;
    } catch (error) {
      if (this.#opened === opened) this.#opened = null;
      throw error;
    }
  }

  async #told<N extends keyof Work>(
    name: N,
    given: Parameters<Work[N]>,
  ): Promise<Awaited<ReturnType<Work[N]>>> {
    const number = this.#number++;
    let timer: ReturnType<typeof setTimeout> | undefined;
    const { done, error } = await new Promise<Told>((resolve) => {
      this.#waiting.set(number, resolve);
      const late = (): void => this.#end(`the phone does not answer: ${name}`);
      timer = setTimeout(late, LONGER[name] ?? PATIENCE);
      try {
        this.#worker ??= this.#begun();
        this.#worker.postMessage({ number, name, given } satisfies Asked);
      } catch (reason) {
        this.#end(String(reason));
      }
    });
    clearTimeout(timer);
    if (error) throw new PhoneError(error.name, error.message);
    return done as Awaited<ReturnType<Work[N]>>;
  }

  #begun(): Worker {
    const worker = new Worker(ownScript("worker"), { type: "module" });
    worker.onmessage = ({ data }: MessageEvent<Told>) => {
      this.#waiting.get(data.number)?.(data);
      this.#waiting.delete(data.number);
      // A worker does not retry to load a script that failed.
      if (data.error?.name === null) this.#end(data.error.message);
    };
    worker.onerror = ({ message }) => this.#end(message || "the phone's script did not load");
    worker.onmessageerror = () => this.#end("the phone's answer cannot be read");
    return worker;
  }

  /** End the worker and fail its calls; the next call starts another. */
  #end(message: string): void {
    this.#worker?.terminate();
    this.#worker = this.#opened = null;
    for (const [number, tell] of this.#waiting) tell({ number, error: { name: null, message } });
    this.#waiting.clear();
  }
}
