/**
 * Ballots that prove themselves: the validity circuit of Prio3MultihotCountVec
 * (draft-irtf-cfrg-vdaf-20, section 7.4.5).
 */

import { InvalidInputError } from "../errors.ts";
import { type Elements, MODULUS, powers } from "./field.ts";

/** Circuit that is zero on vectors of `length` bits of which at most `mostOnes` are ones. */
export class Ballots {
  /** Number of the algorithm, in tags. */
  readonly algorithm = 5;
  readonly length: number;
  readonly mostOnes: number;
  /** Values of the bits that encode the number of ones: 1, 2, 4, … and the rest of the most. */
  readonly #worth: readonly number[];

  constructor(length: number, mostOnes: number) {
    this.length = length;
    this.mostOnes = mostOnes;
    const powers = Array.from({ length: bitLength(mostOnes) - 1 }, (_, at) => 2 ** at);
    this.#worth = [...powers, mostOnes - (2 ** powers.length - 1)];
  }

  /** Elements of an encoded vector. */
  get encodedLength(): number {
    return this.length + this.#worth.length;
  }

  /**
   * Return a vector with the number of its ones behind it, in bits.
   *
   * Throws `InvalidInputError` for anything but zeros and at most `mostOnes` ones.
   */
  encode(values: ArrayLike<number>): Elements {
    const bits = Array.from(values);
    const ones = bits.reduce((sum, bit) => sum + bit, 0);
    const areBits = bits.every((bit) => bit === 0 || bit === 1);
    if (bits.length !== this.length || !areBits || ones > this.mostOnes) {
      throw new InvalidInputError(`not ${this.length} zeros and at most ${this.mostOnes} ones`);
    }
    const last = this.#worth.at(-1)!;
    const isLast = ones > this.mostOnes - last;
    const rest = isLast ? ones - last : ones;
    const lower = this.#worth.slice(0, -1).map((worth) => Math.floor(rest / worth) % 2);
    return [...bits, ...lower, Number(isLast)].map(BigInt);
  }

  /** Return what a call of the gadget multiplies, pair by pair: r^k · x and x − 1. */
  factors(chunk: Elements, joint: bigint): readonly (readonly [bigint, bigint])[] {
    const weights = powers(joint, chunk.length + 1);
    return chunk.map((each, at) => [(each * weights[at + 1]!) % MODULUS, each - 1n]);
  }
}

/** Return the number of bits of a whole number from 1 to 2^32 − 1. */
export function bitLength(value: number): number {
  return 32 - Math.clz32(value);
}
