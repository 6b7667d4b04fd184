/**
 * Exponentials and logarithms in plain arithmetic.
 *
 * Engines compute `Math.exp` and `Math.log` differently in the last digits. What a ledger books
 * must not depend on the engine, and sums, products, quotients and `Math.sqrt` of doubles do not.
 * Errors are a few units in the last place.
 */

const LN2_HIGH = 2977044471 / 2 ** 32; // the first 32 bits of ln 2, so that multiples are exact
const LN2_LOW = 1.9082149292705878e-10; // the rest
const ROOT = Math.SQRT2;
/** A number and its bits; made once, as a policy takes logarithms by the thousand. */
const BITS = new DataView(new ArrayBuffer(8));

/** Return the sum of numbers of at least 0, rounded once, as Python's `fsum` (Neumaier 1974). */
export function total(values: readonly number[]): number {
  let [sum, rest] = [0, 0];
  for (const value of values) {
    const next = sum + value;
    rest += sum < value ? value - next + sum : sum - next + value;
    sum = next;
  }
  return sum < Infinity ? sum + rest : sum;
}

/** Return e^x. */
export function exp(x: number): number {
  if (Number.isNaN(x)) return x;
  if (x > 709.79) return Infinity;
  if (x < -745.14) return 0;
  const twos = Math.floor(x / Math.LN2 + 0.5);
  const rest = x - twos * LN2_HIGH - twos * LN2_LOW;
  // In two steps, as 2^1024 and 2^-1074 are not both doubles that one factor could be.
  const half = Math.trunc(twos / 2);
  return (1 + series(rest)) * power(half) * power(twos - half);
}

/** Return e^x − 1, also where x is tiny. */
export function expm1(x: number): number {
  return Math.abs(x) < 0.35 ? series(x) : exp(x) - 1;
}

/** Return ln x. */
export function log(x: number): number {
  if (!(x > 0) || x === Infinity) return x === 0 ? -Infinity : x > 0 ? x : NaN;
  let twos = 0;
  if (x < 2 ** -1022) {
    x *= 2 ** 54;
    twos = -54;
  }
  BITS.setFloat64(0, x);
  const exponent = (BITS.getUint16(0) >> 4) - 1023;
  BITS.setUint16(0, (BITS.getUint16(0) & 0x800f) | 0x3ff0);
  let part = BITS.getFloat64(0);
  twos += exponent;
  if (part > ROOT) {
    part /= 2;
    twos += 1;
  }
  return twos * LN2_HIGH + (twos * LN2_LOW + ratio(part - 1));
}

/** Return ln(1 + x), also where x is tiny. */
export function log1p(x: number): number {
  return Math.abs(x) < 0.3 ? ratio(x) : log(1 + x);
}

/** Return e^x − 1 for |x| < 0.36 by its power series, the smallest terms first. */
function series(x: number): number {
  let sum = 0;
  for (let term = 17; term > 1; term--) sum = ((sum + 1) * x) / term;
  return (sum + 1) * x;
}

/** Return ln(1 + x) for −0.3 ≤ x < 0.42 by the series of artanh. */
function ratio(x: number): number {
  const s = x / (2 + x);
  const square = s * s;
  let sum = 0;
  for (let odd = 29; odd > 1; odd -= 2) sum = (sum + 1 / odd) * square;
  return 2 * s * (1 + sum);
}

/** Return 2^n for a whole n from −1022 to 1023. */
function power(n: number): number {
  BITS.setFloat64(0, 0);
  BITS.setUint16(0, (n + 1023) << 4);
  return BITS.getFloat64(0);
}
