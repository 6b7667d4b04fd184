"use strict";
class SecondCollector extends AudioWorkletProcessor {
    #samples = new Float32Array(sampleRate);
    #count = 0;
    #skipped = 0;
    process([channels]) {
        const block = channels?.[0];
        if (block === undefined)
            return true;
        if (this.#count === 0 && this.#skipped < sampleRate && block.every((sample) => sample === 0)) {
            this.#skipped += block.length;
            return true;
        }
        const taken = block.subarray(0, sampleRate - this.#count);
        this.#samples.set(taken, this.#count);
        this.#count += taken.length;
        if (this.#count < sampleRate)
            return true;
        this.port.postMessage(this.#samples, [this.#samples.buffer]);
        return false;
    }
}
registerProcessor("second-collector", SecondCollector);
