/** The part of a microphone that runs on the browser's audio thread: it collects one second. */

// Names of AudioWorkletGlobalScope, which TypeScript's types lack.
declare const sampleRate: number;
declare abstract class AudioWorkletProcessor {
  readonly port: MessagePort;
}
declare function registerProcessor(name: string, kind: new () => AudioWorkletProcessor): void;

/** Sends one second of its first channel to its port, once, and ends. */
export class SecondCollector extends AudioWorkletProcessor {
  readonly #samples = new Float32Array(sampleRate);
  #count = 0;
  #skipped = 0;

  /** Take the next samples; return whether more are wanted. */
  process([channels]: readonly (readonly Float32Array[])[]): boolean {
    // Firefox keeps calling this while the microphone runs, whatever is returned.
    if (this.#count === sampleRate) return false;
    const block = channels?.[0];
    if (block === undefined) return true;
    // Browsers deliver zeros until the microphone runs: they are skipped, for a second at most.
    if (this.#count === 0 && this.#skipped < sampleRate && block.every((sample) => sample === 0)) {
      this.#skipped += block.length;
      return true;
    }
    const taken = block.subarray(0, sampleRate - this.#count);
    this.#samples.set(taken, this.#count);
    this.#count += taken.length;
    if (this.#count < sampleRate) return true;
    this.port.postMessage(this.#samples, [this.#samples.buffer]);
    return false;
  }
}

registerProcessor("second-collector", SecondCollector);
