/**
 * Vectors of bounded length, which phones put into a sum.
 *
 * Python's `voting.vectors` proves how far one recording, or a whole phone, can move them.
 */

import { InvalidInputError } from "../protocol/errors.ts";
import { GRID } from "../protocol/privacy/mechanisms.ts";
import { rint, squared } from "./geometry.ts";

/** Last entry of the unit vector of a labelled recording; its sum gives their number. */
const COUNTED = 0.25;
/** Length of its other entries together. */
const UNCOUNTED = Math.sqrt(1 - COUNTED ** 2);
/** Margin in steps, far above the rounding errors of doubles. */
const ROUNDOFF = 2 ** -20;

/** Append to each row of sums of unit vectors an entry that counts them. */
export function counted(
  sums: Float64Array,
  columns: number,
  counts: ArrayLike<number>,
): Float64Array {
  const wide = new Float64Array((sums.length / columns) * (columns + 1));
  for (let row = 0; row * columns < sums.length; row++) {
    const own = sums.subarray(row * columns, (row + 1) * columns);
    wide.set(
      own.map((value) => UNCOUNTED * value),
      row * (columns + 1),
    );
    wide[row * (columns + 1) + columns] = COUNTED * counts[row]!;
  }
  return wide;
}

/** Return values divided by the L2 norm of all counts, or by `least` if the norm is smaller. */
export function bounded(values: Float64Array, counts: Iterable<number>, least = 1): Float64Array {
  const norm = Math.max(least, Math.sqrt(squared(counts)));
  return values.map((value) => value / norm);
}

/**
 * Return a vector of norm at most 1 as whole numbers of norm below `GRID`.
 *
 * Throws `InvalidInputError` if it is longer or not finite: nothing of it may be released.
 */
export function quantized(vector: Float64Array): Int32Array {
  const units = unitSteps(vector.length);
  let sum = 0;
  const steps = vector.map((value) => {
    const step = rint(value * units);
    sum += step * step;
    return step;
  });
  // Negated, so that NaN is refused.
  if (!(sum < GRID ** 2)) {
    throw new InvalidInputError("a vector must be finite and at most 1 long to be summed");
  }
  return Int32Array.from(steps);
}

/** Return the number of grid steps per unit length, for a vector of `length` entries. */
export function unitSteps(length: number): number {
  return GRID - Math.sqrt(length) / 2 - ROUNDOFF;
}
