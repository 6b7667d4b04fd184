import { InvalidInputError } from "../protocol/errors.js";
import { ChirpTransform, FastTransform } from "./fourier.js";
export const FULL_SCALE = 0.999;
export const CLIPPED_FRACTION = 0.001;
export const SILENT_RMS = 1e-4;
export const RATES = [1000, 768_000];
export const FRAMES = 61;
export const BANDS = 64;
const LOWEST_HERTZ = 50;
const POWER_FLOOR = 1e-8;
export class UnusableRecordingError extends InvalidInputError {
    reason;
    constructor(reason, detail) {
        super(`the recording is ${reason}: ${detail}`);
        this.reason = reason;
    }
}
export function oneSecond(sound, wanted) {
    const { channels, rate } = sound;
    check(channels, rate, wanted);
    const mono = new Float64Array(rate);
    for (const channel of channels) {
        let clipped = 0;
        for (let i = 0; i < rate; i++) {
            const sample = channel[i];
            if (!Number.isFinite(sample))
                throw new UnusableRecordingError("not finite", "it holds NaN or infinite samples");
            if (Math.abs(sample) >= FULL_SCALE)
                clipped++;
            mono[i] += sample / channels.length;
        }
        if (clipped / rate > CLIPPED_FRACTION) {
            throw new UnusableRecordingError("clipped", `${percent(clipped / rate)} of its samples are at full scale; ` +
                `the limit is ${percent(CLIPPED_FRACTION)}`);
        }
    }
    const offset = mono.reduce((sum, sample) => sum + sample, 0) / rate;
    const second = resampled(mono.map((sample) => sample - offset), wanted);
    const level = rootMeanSquare(second);
    if (level < SILENT_RMS) {
        throw new UnusableRecordingError("silent", `its rms is ${level.toExponential(1)}; it must be at least ${SILENT_RMS.toExponential(0)}`);
    }
    return Float32Array.from(second);
}
export class Spectrum {
    rate;
    #frame;
    #transform;
    #window;
    #filters;
    #places;
    constructor(rate) {
        this.rate = rate;
        this.#frame = (rate * 32) / 1000;
        this.#transform = new FastTransform(this.#frame);
        this.#places = Uint32Array.from({ length: this.#frame / 2 + 1 }, (_, k) => this.#transform.reversed(k));
        this.#window = hann(this.#frame);
        this.#filters = melFilters(rate, this.#frame);
    }
    of(second) {
        if (second.length !== this.rate || !second.every(Number.isFinite)) {
            throw new InvalidInputError(`a second must have ${this.rate} samples, all of them finite; this one has ` +
                (second.length === this.rate ? "NaN or infinite ones" : second.length));
        }
        const level = Math.max(rootMeanSquare(second), SILENT_RMS);
        const bands = new Float32Array(FRAMES * BANDS);
        const real = new Float64Array(this.#frame);
        const imaginary = new Float64Array(this.#frame);
        const power = new Float64Array(this.#places.length);
        for (let frame = 0; frame < FRAMES; frame++) {
            const start = (frame * this.#frame) / 2;
            for (let i = 0; i < this.#frame; i++)
                real[i] = (second[start + i] / level) * this.#window[i];
            imaginary.fill(0);
            this.#transform.forward(real, imaginary);
            this.#places.forEach((place, k) => (power[k] = real[place] ** 2 + imaginary[place] ** 2));
            this.#filters.forEach(({ first, weights }, band) => {
                let sum = 0;
                for (let i = 0; i < weights.length; i++)
                    sum += weights[i] * power[first + i];
                bands[frame * BANDS + band] = Math.log(sum + POWER_FLOOR);
            });
        }
        return bands;
    }
}
function melFilters(rate, frame) {
    const logStep = Math.log(6.4) / 27;
    const lowest = (LOWEST_HERTZ * 15) / 1000;
    const highest = 15 + Math.log(rate / 2000) / logStep;
    const edges = Array.from({ length: BANDS + 2 }, (_, i) => {
        const mel = lowest + ((highest - lowest) * i) / (BANDS + 1);
        return mel < 15 ? (mel * 1000) / 15 : 1000 * Math.exp((mel - 15) * logStep);
    });
    return Array.from({ length: BANDS }, (_, band) => {
        const [low, centre, high] = [edges[band], edges[band + 1], edges[band + 2]];
        const first = Math.ceil((low * frame) / rate);
        const last = Math.min(Math.floor((high * frame) / rate), frame / 2);
        const weights = Float64Array.from({ length: last - first + 1 }, (_, i) => {
            const hertz = ((first + i) * rate) / frame;
            return Math.max(0, Math.min((hertz - low) / (centre - low), (high - hertz) / (high - centre)));
        });
        const sum = weights.reduce((total, weight) => total + weight, 0);
        return { first, weights: weights.map((weight) => weight / sum) };
    });
}
function hann(frame) {
    const window = Float64Array.from({ length: frame }, (_, i) => 0.5 - 0.5 * Math.cos((2 * Math.PI * i) / frame));
    const energy = window.reduce((sum, value) => sum + value * value, 0);
    return window.map((value) => value / Math.sqrt(energy));
}
function check(channels, rate, wanted) {
    if (!Number.isInteger(rate) || rate < RATES[0] || rate > RATES[1]) {
        throw new InvalidInputError(`the rate must be an integer, ${RATES[0]} to ${RATES[1]} samples per second, not ${rate}`);
    }
    const length = channels[0]?.length;
    if (length === undefined ||
        channels.some((each) => !(each instanceof Float32Array) || each.length !== length)) {
        throw new InvalidInputError("a sound must have a Float32Array for each channel, all of one length");
    }
    if (rate < wanted) {
        throw new InvalidInputError(`the recording has ${rate} samples per second, but the encoder hears ${wanted}: ` +
            "record at that rate or above");
    }
    if (length < rate) {
        throw new UnusableRecordingError("too short", `it has ${length} samples; it must have one second, ${rate} at this rate`);
    }
}
let prepared;
function resampled(mono, wanted) {
    const rate = mono.length;
    if (rate === wanted)
        return mono;
    const bins = wanted / 2;
    if (prepared?.rate !== rate || prepared.wanted !== wanted) {
        const down = new ChirpTransform(rate, bins, rate, -1);
        prepared = { rate, wanted, down, up: new ChirpTransform(bins, wanted, wanted, 1) };
    }
    const [real, imaginary] = prepared.down.apply(mono);
    const [second] = prepared.up.apply(real, imaginary);
    return second.map((sample) => (2 * sample) / rate);
}
function rootMeanSquare(samples) {
    let sum = 0;
    for (const sample of samples)
        sum += sample * sample;
    return Math.sqrt(sum / samples.length);
}
function percent(fraction) {
    return `${(100 * fraction).toFixed(1)} %`;
}
