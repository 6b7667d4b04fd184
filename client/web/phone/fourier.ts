/**
 * Discrete Fourier transforms, in double precision: of a power of two, and of any length by
 * Bluestein's chirp.
 *
 * L. Bluestein, A linear filtering approach to the computation of discrete Fourier transform, 1970.
 */

/** Complex fast Fourier transform of a power of two, with results in bit-reversed order. */
export class FastTransform {
  readonly length: number;
  readonly #cosines: Float64Array;
  readonly #sines: Float64Array;

  constructor(length: number) {
    this.length = length;
    this.#cosines = new Float64Array(length / 2);
    this.#sines = new Float64Array(length / 2);
    for (let i = 0; i < length / 2; i++) {
      this.#cosines[i] = Math.cos((2 * Math.PI * i) / length);
      this.#sines[i] = -Math.sin((2 * Math.PI * i) / length);
    }
  }

  /** Transform in place; entry `reversed(k)` of the result is the coefficient k. */
  forward(real: Float64Array, imaginary: Float64Array): void {
    const cosines = this.#cosines;
    const sines = this.#sines;
    for (let half = this.length / 2, step = 1; half >= 1; half /= 2, step *= 2) {
      for (let start = 0; start < this.length; start += 2 * half) {
        for (let i = start, turn = 0; i < start + half; i++, turn += step) {
          const a = real[i]!;
          const b = imaginary[i]!;
          const c = real[i + half]!;
          const d = imaginary[i + half]!;
          const cosine = cosines[turn]!;
          const sine = sines[turn]!;
          real[i] = a + c;
          imaginary[i] = b + d;
          real[i + half] = (a - c) * cosine - (b - d) * sine;
          imaginary[i + half] = (a - c) * sine + (b - d) * cosine;
        }
      }
    }
  }

  /** Invert `forward`, including its order, up to a factor of `length`. */
  backward(real: Float64Array, imaginary: Float64Array): void {
    const cosines = this.#cosines;
    const sines = this.#sines;
    for (let half = 1, step = this.length / 2; half < this.length; half *= 2, step /= 2) {
      for (let start = 0; start < this.length; start += 2 * half) {
        for (let i = start, turn = 0; i < start + half; i++, turn += step) {
          const cosine = cosines[turn]!;
          const sine = -sines[turn]!;
          const c = real[i + half]!;
          const d = imaginary[i + half]!;
          const e = c * cosine - d * sine;
          const f = c * sine + d * cosine;
          real[i + half] = real[i]! - e;
          imaginary[i + half] = imaginary[i]! - f;
          real[i] = real[i]! + e;
          imaginary[i] = imaginary[i]! + f;
        }
      }
    }
  }

  /** Return where `forward` leaves coefficient k. */
  reversed(k: number): number {
    let place = 0;
    for (let bit = 1; bit < this.length; bit *= 2) {
      place = 2 * place + (k & 1);
      k >>= 1;
    }
    return place;
  }
}

/** Sums Σ z[n] e^(±2πi nk/period) over n < count, for k < bins, of any period. */
export class ChirpTransform {
  readonly #count: number;
  readonly #bins: number;
  readonly #fast: FastTransform;
  readonly #cosines: Float64Array;
  readonly #sines: Float64Array;
  readonly #filter: [Float64Array, Float64Array];

  /**
   * Prepare the sums.
   *
   * `sign`: sign of the exponent: -1 for a spectrum, 1 for sound from a spectrum.
   */
  constructor(count: number, bins: number, period: number, sign: 1 | -1) {
    this.#count = count;
    this.#bins = bins;
    let length = 2;
    while (length < count + bins - 1) length *= 2;
    this.#fast = new FastTransform(length);
    const most = Math.max(count, bins);
    this.#cosines = new Float64Array(most);
    this.#sines = new Float64Array(most);
    this.#filter = [new Float64Array(length), new Float64Array(length)];
    for (let n = 0; n < most; n++) {
      // nk = (n² + k² - (k - n)²) / 2; squares are taken modulo the chirp's own period, exactly.
      const angle = (sign * Math.PI * ((n * n) % (2 * period))) / period;
      this.#cosines[n] = Math.cos(angle);
      this.#sines[n] = Math.sin(angle);
      for (const place of [...(n < bins ? [n] : []), ...(0 < n && n < count ? [length - n] : [])]) {
        this.#filter[0][place] = Math.cos(angle) / length;
        this.#filter[1][place] = -Math.sin(angle) / length;
      }
    }
    this.#fast.forward(...this.#filter);
  }

  /**
   * Return the sums of `count` complex numbers.
   *
   * `real`: real parts.
   * `imaginary`: imaginary parts; absent for real numbers.
   * Returns: real and imaginary parts, `bins` of each.
   */
  apply(real: Float64Array, imaginary?: Float64Array): [Float64Array, Float64Array] {
    const length = this.#fast.length;
    const re = new Float64Array(length);
    const im = new Float64Array(length);
    for (let n = 0; n < this.#count; n++) {
      const x = real[n]!;
      const y = imaginary?.[n] ?? 0;
      re[n] = x * this.#cosines[n]! - y * this.#sines[n]!;
      im[n] = x * this.#sines[n]! + y * this.#cosines[n]!;
    }
    this.#fast.forward(re, im);
    multiply(re, im, ...this.#filter);
    this.#fast.backward(re, im);
    multiply(re, im, this.#cosines, this.#sines, this.#bins);
    return [re.subarray(0, this.#bins), im.subarray(0, this.#bins)];
  }
}

function multiply(
  real: Float64Array,
  imaginary: Float64Array,
  cosines: Float64Array,
  sines: Float64Array,
  count = real.length,
): void {
  for (let i = 0; i < count; i++) {
    const x = real[i]!;
    const y = imaginary[i]!;
    real[i] = x * cosines[i]! - y * sines[i]!;
    imaginary[i] = x * sines[i]! + y * cosines[i]!;
  }
}
