/**
 * Noise that each of two operators adds to every entry of a sum: stated as multiples of 2^-16, so
 * that all parties derive the same (docs/protocol.md, section 12).
 */

import { demand } from "../checks.ts";
import { large, map, type Of, tagged } from "../fields.ts";
import type { PrivacyEvent } from "./events.ts";

const FINENESS = 2 ** 16;
const LARGEST = 2n ** 62n;

/** The noise of one operator on the wire. */
export const noiseOfOperators = tagged("law", {
  "discrete-laplace": map({ fine_scale: large }),
  "discrete-gaussian": map({ fine_variance: large }),
});

export type NoiseOfOperators = Of<typeof noiseOfOperators>;

/** Return discrete Gaussian noise of at least this variance. */
export function gaussian(variance: number): NoiseOfOperators {
  return { law: "discrete-gaussian", fine_variance: BigInt(Math.ceil(variance * FINENESS)) };
}

/** Return the scale or variance of noise, in units of 2^-16. */
export function fineness(noise: NoiseOfOperators): bigint {
  return noise.law === "discrete-laplace" ? noise.fine_scale : noise.fine_variance;
}

/** Throw `InvalidParametersError` for noise that is out of range. */
export function checkNoise(noise: NoiseOfOperators): void {
  const fine = fineness(noise);
  demand(fine >= 1n && fine <= LARGEST, `${noise.law}: ${fine} in 2^-16; must be 1 to 2^62`);
}

/** Return whether noise is of the same law as the other, and no less. */
export function protectsAs(noise: NoiseOfOperators, other: NoiseOfOperators): boolean {
  return noise.law === other.law && fineness(noise) >= fineness(other);
}

/**
 * Return a bound that both operators' noise exceeds in any of `length` entries with probability at
 * most 2^-80.
 */
export function reach(noise: NoiseOfOperators, length: number): bigint {
  const bits = BigInt(80 + bitLength(BigInt(length)));
  const tenth = BigInt(10 * FINENESS);
  return noise.law === "discrete-laplace"
    ? 2n * ((7n * noise.fine_scale * (bits + 2n)) / tenth + 1n)
    : root((4n * noise.fine_variance * (bits + 1n) * 7n) / tenth) + 1n;
}

/** Return the event of one operator's noise on a sum, given the distance of neighbours. */
export function eventOf(noise: NoiseOfOperators, l1: number, l2: number): PrivacyEvent {
  const stated = Number(fineness(noise)) / FINENESS;
  return noise.law === "discrete-laplace"
    ? { event: "pure", epsilon: l1 / stated, times: 1 }
    : { event: "zcdp", rho: (l2 * l2) / (2 * stated) };
}

/** Return the number of bits of a whole number above 0. */
export function bitLength(value: number | bigint): number {
  return value.toString(2).length;
}

/** Return the root of a whole number, rounded down, by Newton's method from above. */
function root(value: bigint): bigint {
  if (value < 2n) return value;
  let found = 1n << BigInt((bitLength(value) + 1) >> 1);
  for (;;) {
    const next = (found + value / found) >> 1n;
    if (next >= found) return found;
    found = next;
  }
}
