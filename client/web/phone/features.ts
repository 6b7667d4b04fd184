/** Features of a recording for an encoder: one second of mono, and its log-mel spectrum. */

import { InvalidInputError } from "../protocol/errors.ts";
import { ChirpTransform, FastTransform } from "./fourier.ts";

/** Magnitude from which on a sample counts as clipped. */
export const FULL_SCALE = 0.999;
/** Fraction of samples at full scale above which a second is clipped. */
export const CLIPPED_FRACTION = 0.001;
/** Root mean square below which a second is silent (80 dB below full scale). */
export const SILENT_RMS = 1e-4;
/** Lowest and highest sample rate of any sound, in hertz. */
export const RATES: readonly [number, number] = [1000, 768_000];
/** Frames of every spectrum: 32 ms each, every 16 ms. */
export const FRAMES = 61;
/** Mel bands of every spectrum. */
export const BANDS = 64;

const LOWEST_HERTZ = 50;
const POWER_FLOOR = 1e-8;

/** Reasons why a recording cannot be used. */
export type Unusable = "too short" | "silent" | "clipped" | "not finite";

/** A recording that cannot be used; `reason` says why. */
export class UnusableRecordingError extends InvalidInputError {
  override name = "UnusableRecordingError";
  readonly reason: Unusable;

  constructor(reason: Unusable, detail: string) {
    super(`the recording is ${reason}: ${detail}`);
    this.reason = reason;
  }
}

/** Sound as a browser gives it: numbers in [-1, 1], an array for each channel. */
export interface Sound {
  readonly channels: readonly Float32Array[];
  /** Samples per second. */
  readonly rate: number;
}

/**
 * Return the first full second of a recording, mono at the rate of an encoder.
 *
 * Channels are averaged and a constant offset is removed. Resampling cuts the discrete spectrum of
 * that second, so only the sound below half that rate counts.
 *
 * `wanted`: samples per second that the encoder hears; the sound's rate must not be below it.
 * Returns: `wanted` numbers.
 * Throws `InvalidInputError`: the sound has an invalid shape or rate, or a lower rate than the
 * encoder.
 * Throws `UnusableRecordingError`: the second is too short, not finite, silent (root mean square
 * below `SILENT_RMS`) or clipped (over `CLIPPED_FRACTION` of the samples of a channel at
 * `FULL_SCALE` or above).
 */
export function oneSecond(sound: Sound, wanted: number): Float32Array {
  const { channels, rate } = sound;
  check(channels, rate, wanted);
  const mono = new Float64Array(rate);
  for (const channel of channels) {
    let clipped = 0;
    for (let i = 0; i < rate; i++) {
      const sample = channel[i]!;
      if (!Number.isFinite(sample))
        throw new UnusableRecordingError("not finite", "it holds NaN or infinite samples");
      if (Math.abs(sample) >= FULL_SCALE) clipped++;
      mono[i]! += sample / channels.length;
    }
    if (clipped / rate > CLIPPED_FRACTION) {
      throw new UnusableRecordingError(
        "clipped",
        `${percent(clipped / rate)} of its samples are at full scale; ` +
          `the limit is ${percent(CLIPPED_FRACTION)}`,
      );
    }
  }
  const offset = mono.reduce((sum, sample) => sum + sample, 0) / rate;
  const second = resampled(
    mono.map((sample) => sample - offset),
    wanted,
  );
  const level = rootMeanSquare(second);
  if (level < SILENT_RMS) {
    throw new UnusableRecordingError(
      "silent",
      `its rms is ${level.toExponential(1)}; it must be at least ${SILENT_RMS.toExponential(0)}`,
    );
  }
  return Float32Array.from(second);
}

/** Spectrum of a second at one rate: 61 frames of 64 bands, the input of an encoder's network. */
export class Spectrum {
  /** Samples per second, a multiple of 8,000. */
  readonly rate: number;
  readonly #frame: number;
  readonly #transform: FastTransform;
  readonly #window: Float64Array;
  readonly #filters: readonly MelFilter[];
  readonly #places: Uint32Array;

  constructor(rate: number) {
    this.rate = rate;
    this.#frame = (rate * 32) / 1000;
    // A frame of 256 or 512 samples is a power of two.
    this.#transform = new FastTransform(this.#frame);
    this.#places = Uint32Array.from({ length: this.#frame / 2 + 1 }, (_, k) =>
      this.#transform.reversed(k),
    );
    this.#window = hann(this.#frame);
    this.#filters = melFilters(rate, this.#frame);
  }

  /**
   * Return the log-mel spectrum of a second, scaled to unit level first.
   *
   * Periodic Hann window, frames of 32 ms every 16 ms. The weights of a band sum to one and the
   * power of a frame is divided by the energy of the window, so white noise of variance v reads
   * log(v) in every band.
   *
   * `second`: `rate` finite numbers.
   * Returns: 61 rows of 64 bands: log(mean power + 1e-8), natural logarithm.
   * Throws `InvalidInputError`: the second has another length, or is not finite.
   */
  of(second: Float32Array): Float32Array {
    if (second.length !== this.rate || !second.every(Number.isFinite)) {
      throw new InvalidInputError(
        `a second must have ${this.rate} samples, all of them finite; this one has ` +
          (second.length === this.rate ? "NaN or infinite ones" : second.length),
      );
    }
    const level = Math.max(rootMeanSquare(second), SILENT_RMS);
    const bands = new Float32Array(FRAMES * BANDS);
    const real = new Float64Array(this.#frame);
    const imaginary = new Float64Array(this.#frame);
    const power = new Float64Array(this.#places.length);
    for (let frame = 0; frame < FRAMES; frame++) {
      const start = (frame * this.#frame) / 2;
      for (let i = 0; i < this.#frame; i++)
        real[i] = (second[start + i]! / level) * this.#window[i]!;
      imaginary.fill(0);
      this.#transform.forward(real, imaginary);
      this.#places.forEach((place, k) => (power[k] = real[place]! ** 2 + imaginary[place]! ** 2));
      this.#filters.forEach(({ first, weights }, band) => {
        let sum = 0;
        for (let i = 0; i < weights.length; i++) sum += weights[i]! * power[first + i]!;
        bands[frame * BANDS + band] = Math.log(sum + POWER_FLOOR);
      });
    }
    return bands;
  }
}

/** One band's weights, of which the first is that of bin `first`. */
interface MelFilter {
  readonly first: number;
  readonly weights: Float64Array;
}

/**
 * Return triangles of power over frequency, evenly spaced on Slaney's mel scale from 50 Hz to half
 * the rate, each of unit sum (M. Slaney, Auditory Toolbox, 1998: linear below 1 kHz, logarithmic
 * above).
 */
function melFilters(rate: number, frame: number): MelFilter[] {
  const logStep = Math.log(6.4) / 27;
  const lowest = (LOWEST_HERTZ * 15) / 1000;
  const highest = 15 + Math.log(rate / 2000) / logStep;
  const edges = Array.from({ length: BANDS + 2 }, (_, i) => {
    const mel = lowest + ((highest - lowest) * i) / (BANDS + 1);
    return mel < 15 ? (mel * 1000) / 15 : 1000 * Math.exp((mel - 15) * logStep);
  });
  return Array.from({ length: BANDS }, (_, band) => {
    const [low, centre, high] = [edges[band]!, edges[band + 1]!, edges[band + 2]!];
    const first = Math.ceil((low * frame) / rate);
    const last = Math.min(Math.floor((high * frame) / rate), frame / 2);
    const weights = Float64Array.from({ length: last - first + 1 }, (_, i) => {
      const hertz = ((first + i) * rate) / frame;
      return Math.max(
        0,
        Math.min((hertz - low) / (centre - low), (high - hertz) / (high - centre)),
      );
    });
    const sum = weights.reduce((total, weight) => total + weight, 0);
    return { first, weights: weights.map((weight) => weight / sum) };
  });
}

function hann(frame: number): Float64Array {
  const window = Float64Array.from(
    { length: frame },
    (_, i) => 0.5 - 0.5 * Math.cos((2 * Math.PI * i) / frame),
  );
  const energy = window.reduce((sum, value) => sum + value * value, 0);
  return window.map((value) => value / Math.sqrt(energy));
}

function check(channels: readonly Float32Array[], rate: number, wanted: number): void {
  if (!Number.isInteger(rate) || rate < RATES[0] || rate > RATES[1]) {
    throw new InvalidInputError(
      `the rate must be an integer, ${RATES[0]} to ${RATES[1]} samples per second, not ${rate}`,
    );
  }
  const length = channels[0]?.length;
  if (
    length === undefined ||
    channels.some((each) => !(each instanceof Float32Array) || each.length !== length)
  ) {
    throw new InvalidInputError(
      "a sound must have a Float32Array for each channel, all of one length",
    );
  }
  if (rate < wanted) {
    throw new InvalidInputError(
      `the recording has ${rate} samples per second, but the encoder hears ${wanted}: ` +
        "record at that rate or above, and not by Bluetooth",
    );
  }
  if (length < rate) {
    throw new UnusableRecordingError(
      "too short",
      `it has ${length} samples; it must have one second, ${rate} at this rate`,
    );
  }
}

/** Transforms of the last rate, cached since a phone's microphone has one rate. */
let prepared:
  { rate: number; wanted: number; down: ChirpTransform; up: ChirpTransform } | undefined;

function resampled(mono: Float64Array, wanted: number): Float64Array {
  const rate = mono.length;
  if (rate === wanted) return mono;
  // The bin at half the rate is left out: there a real signal's phase is ambiguous.
  const bins = wanted / 2;
  if (prepared?.rate !== rate || prepared.wanted !== wanted) {
    const down = new ChirpTransform(rate, bins, rate, -1);
    prepared = { rate, wanted, down, up: new ChirpTransform(bins, wanted, wanted, 1) };
  }
  const [real, imaginary] = prepared.down.apply(mono);
  // The other half of the spectrum is the mirror image of this one, so twice the real part is both;
  // bin 0, which has no image, is zero once the offset is removed.
  const [second] = prepared.up.apply(real, imaginary);
  return second.map((sample) => (2 * sample) / rate);
}

function rootMeanSquare(samples: Float32Array | Float64Array): number {
  let sum = 0;
  for (const sample of samples) sum += sample * sample;
  return Math.sqrt(sum / samples.length);
}

function percent(fraction: number): string {
  return `${(100 * fraction).toFixed(1)} %`;
}
