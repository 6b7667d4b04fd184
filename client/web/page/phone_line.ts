/** The page's line to its phone, which works in a worker. */

import type { Asked, Told, Work } from "./worker.ts";
import { ownScript } from "./scripts.ts";

/** An error of the phone, by the name of its class. */
export class PhoneError extends Error {
  constructor(name: string, message: string) {
    super(message);
    this.name = name;
  }
}

/** A worker with a phone in it. */
export class PhoneLine {
  readonly #waiting = new Map<number, (told: Told) => void>();
  #worker: Worker | null = null;
  #number = 0;

  /** Have the phone do something; throws `PhoneError` with the name of the phone's own error. */
  async ask<N extends keyof Work>(
    name: N,
    ...given: Parameters<Work[N]>
  ): Promise<Awaited<ReturnType<Work[N]>>> {
    const number = this.#number++;
    const told = await new Promise<Told>((resolve) => {
      this.#waiting.set(number, resolve);
      this.#worker ??= this.#begun();
      this.#worker.postMessage({ number, name, given } satisfies Asked);
    });
    if (told.error) throw new PhoneError(told.error.name, told.error.message);
    return told.done as Awaited<ReturnType<Work[N]>>;
  }

  #begun(): Worker {
    const worker = new Worker(ownScript("worker"), { type: "module" });
    worker.addEventListener("message", ({ data }: MessageEvent<Told>) => {
      this.#waiting.get(data.number)?.(data);
      this.#waiting.delete(data.number);
    });
    // A script that did not load would otherwise leave every question without an answer.
    worker.addEventListener("error", ({ message }) => {
      const error = { name: "Error", message: message || "the phone's script did not load" };
      for (const [number, tell] of this.#waiting) tell({ number, error });
      this.#waiting.clear();
    });
    return worker;
  }
}
