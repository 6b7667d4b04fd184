/** Arrays of a network's steps, and limits on the memory and time of a run. */

import { DamagedEncoderError } from "./encoder_file.ts";

/** An array in row-major order; integers are doubles as well. */
export interface Numbers {
  readonly shape: readonly number[];
  readonly data: Float64Array;
}

/** Most dimensions of an array. */
export const MOST_DIMENSIONS = 8;
/** Most numbers in the outputs of all steps: 64 MB. The shipped encoders need 1.4 million. */
const MOST_NUMBERS = 2 ** 23;
/** Most additions of a run, a second or so. The shipped encoders need 93 million. */
const MOST_WORK = 2 ** 29;

/** Remaining memory and time of a run. */
export class Allowance {
  #numbers = MOST_NUMBERS;
  #work = MOST_WORK;

  /** Return zeros of a shape. Throws `DamagedEncoderError`: the run has made too many numbers. */
  zeros(shape: readonly number[]): Numbers {
    const count = countOf(shape);
    this.#numbers -= count;
    if (this.#numbers < 0) {
      throw new DamagedEncoderError(`the model's steps make over ${MOST_NUMBERS} numbers`);
    }
    return { shape, data: new Float64Array(count) };
  }

  /** Count additions before they are made. Throws `DamagedEncoderError`: they are too many. */
  spend(additions: number): void {
    this.#work -= additions;
    if (this.#work < 0) {
      throw new DamagedEncoderError(`the model's steps need over ${MOST_WORK} additions`);
    }
  }
}

/**
 * Return how many numbers an array of a shape has.
 *
 * Throws `DamagedEncoderError`: it has too many dimensions, or one that is not a positive whole
 * number.
 */
export function countOf(shape: readonly number[]): number {
  const whole = shape.every((each) => Number.isInteger(each) && each > 0);
  if (!whole || shape.length > MOST_DIMENSIONS) {
    throw new DamagedEncoderError(
      `the model has an array of shape [${shape.slice(0, MOST_DIMENSIONS + 1)}]`,
    );
  }
  return shape.reduce((product, each) => product * each, 1);
}

/** Return the strides of an array, one for each dimension. */
export function stridesOf(shape: readonly number[]): number[] {
  return shape.map((_, i) => shape.slice(i + 1).reduce((product, each) => product * each, 1));
}

/**
 * Return the index in another array of each element of an array, in row-major order.
 *
 * `shape`: shape of the array.
 * `strides`: strides in the other array, one for each dimension.
 * `start`: index of the first element.
 */
export function places(
  shape: readonly number[],
  strides: readonly number[],
  start = 0,
): Int32Array {
  let found = Int32Array.of(start);
  shape.forEach((size, dimension) => {
    const wider = new Int32Array(found.length * size);
    for (let i = 0, at = 0; i < found.length; i++) {
      for (let j = 0; j < size; j++) wider[at++] = found[i]! + j * strides[dimension]!;
    }
    found = wider;
  });
  return found;
}
