/**
 * What a phone proves of its input to a sum: which vectors are valid, and how they are encoded.
 *
 * Both shapes are checked by one circuit (`circuit.ts`). Python's `earshot_protocol.prio3.shapes`
 * has what operators do with their shares, and why the checks are sound.
 */

import { InvalidInputError, InvalidParametersError } from "../errors.ts";
import type { Bytes } from "../wire.ts";
import type { Elements } from "./field.ts";

/** A shape of vectors as a sum's parameters describe it. */
export type Proof =
  | {
      readonly proof: "counts";
      readonly width: number;
      readonly total: number;
      readonly block: number;
    }
  | { readonly proof: "norm" };

/** Shape of valid vectors of `length` entries. */
export interface Shape {
  /** Number of the algorithm, in tags. */
  readonly algorithm: number;
  readonly length: number;
  /** Elements of an encoded vector whose squares are added up: the first ones. */
  readonly squares: number;
  /** Elements that are bits: those after the squares. */
  readonly bits: number;
  /** Bytes that signs are made of; 0 for a shape without checks by signs. */
  readonly signBytes: number;

  /**
   * Return the elements of a vector that do not depend on signs, modulo p: some may be negative.
   *
   * Throws `InvalidInputError` for an invalid vector.
   */
  fixed(values: readonly number[]): Elements;

  /** Return the elements behind them, which depend on the bytes that signs are made of. */
  signed(values: readonly number[], drawn: Bytes): Elements;
}

/**
 * Return the shape that a sum's parameters describe, of vectors with so many entries.
 *
 * Throws `InvalidParametersError` for numbers that describe no valid vector of these.
 */
export function shapeOf(proof: Proof, length: number): Shape {
  if (!describes(proof, length)) {
    throw new InvalidParametersError(`${JSON.stringify(proof)} describes no ${length} entries`);
  }
  return proof.proof === "norm" ? new Norm(length) : new Counts(proof, length);
}

/** Most bits of a count. */
const LARGEST_WIDTH = 32;

/**
 * Vectors of counts from 0 on, of which each block adds up to at most a given number.
 *
 * An entry is encoded in bits worth 1, 2, 4, … and behind all entries is the total of each block,
 * in such bits and a last one worth the rest of the most. With one bit an entry and one block this
 * is Prio3MultihotCountVec (draft-irtf-cfrg-vdaf-20, section 7.4.5).
 */
class Counts implements Shape {
  readonly algorithm: number;
  readonly length: number;
  readonly squares = 0;
  readonly bits: number;
  readonly signBytes = 0;
  readonly #width: number;
  readonly #total: number;
  readonly #block: number;

  constructor(
    { width, total, block }: { width: number; total: number; block: number },
    length: number,
  ) {
    this.length = length;
    [this.#width, this.#total, this.#block] = [width, total, block];
    this.algorithm = width === 1 && block === length ? 5 : 0xffff0001;
    this.bits = length * width + (length / block) * bitLength(total);
  }

  fixed(values: readonly number[]): Elements {
    const places = bitLength(this.#total) - 1;
    const last = this.#total - (2 ** places - 1);
    const isCount = (value: number): boolean =>
      Number.isInteger(value) && value >= 0 && value < 2 ** this.#width;
    let isValid = values.length === this.length && values.every(isCount);
    const encoded = values.flatMap((value) => bitsOf(value, this.#width));
    for (let at = 0; at < this.length; at += this.#block) {
      const total = values.slice(at, at + this.#block).reduce((sum, value) => sum + value, 0);
      isValid &&= total <= this.#total;
      const isLast = total > this.#total - last;
      encoded.push(...bitsOf(isLast ? total - last : total, places), Number(isLast));
    }
    if (!isValid) {
      throw new InvalidInputError(
        `not ${this.length} numbers below 2^${this.#width}, ` +
          `at most ${this.#total} in ${this.#block}`,
      );
    }
    return encoded.map(BigInt);
  }

  signed(): Elements {
    return [];
  }
}

/** Number of dot products with signs, each of which is checked. */
const SIGN_CHECKS = 100;
const SQUARED_BITS = 24;
const PRODUCT_BITS = 17;

/**
 * Vectors of whole numbers whose squares add up to less than 2^24.
 *
 * Encoded are the entries, 24 bits of the sum of squares, and for each check 17 bits of the dot
 * product with signs −1, 0, 1 (¼, ½, ¼), plus 2^16 − 1. A row of signs is made of two runs of bits,
 * each in whole bytes, lowest bit first: a sign is its bit of the first run less that of the
 * second.
 */
class Norm implements Shape {
  readonly algorithm = 0xffff0000;
  readonly length: number;
  readonly squares: number;
  readonly bits = SQUARED_BITS + SIGN_CHECKS * PRODUCT_BITS;
  readonly signBytes: number;

  constructor(length: number) {
    this.length = this.squares = length;
    this.signBytes = SIGN_CHECKS * 2 * Math.ceil(length / 8);
  }

  fixed(values: readonly number[]): Elements {
    const squared = values.reduce((sum, value) => sum + value * value, 0);
    const isValid = values.length === this.length && values.every(Number.isInteger);
    if (!isValid || squared >= 2 ** SQUARED_BITS) {
      throw new InvalidInputError(
        `not ${this.length} whole numbers whose squares add up to less than 2^${SQUARED_BITS}`,
      );
    }
    return [...values, ...bitsOf(squared, SQUARED_BITS)].map(BigInt);
  }

  signed(values: readonly number[], drawn: Bytes): Elements {
    const run = drawn.length / SIGN_CHECKS / 2;
    const bits: number[] = [];
    for (let row = 0; row < drawn.length; row += 2 * run) {
      const bit = (start: number, at: number): number =>
        (drawn[start + (at >> 3)]! >> (at & 7)) & 1;
      const shifted = values.reduce(
        (sum, value, at) => sum + (bit(row, at) - bit(row + run, at)) * value,
        2 ** (PRODUCT_BITS - 1) - 1,
      );
      if (shifted < 0 || shifted >= 2 ** PRODUCT_BITS) {
        throw new InvalidInputError("a valid vector that fails a check, as one in 2^361 does");
      }
      bits.push(...bitsOf(shifted, PRODUCT_BITS));
    }
    return bits.map(BigInt);
  }
}

function describes(proof: Proof, length: number): boolean {
  const isUpTo = (most: number, value: number): boolean =>
    Number.isInteger(value) && value >= 1 && value <= most;
  if (proof.proof === "norm") return isUpTo(Infinity, length);
  const { width, total, block } = proof;
  return (
    isUpTo(LARGEST_WIDTH, width) &&
    isUpTo(length, block) &&
    isUpTo(block * (2 ** width - 1), total) &&
    length % block === 0
  );
}

/** Return the number of bits of a whole number from 1 to 2^53. */
export function bitLength(value: number): number {
  return value.toString(2).length;
}

/** Return the lowest bits of a number from 0 on, worth 1, 2, 4, … */
function bitsOf(value: number, count: number): number[] {
  return Array.from({ length: count }, (_, place) => Math.floor(value / 2 ** place) % 2);
}
