/**
 * Proof that an encoded vector is valid, whatever shape of vectors is (`shapes.ts`).
 *
 * One gadget multiplies: ParallelSum(Mul) of draft-irtf-cfrg-vdaf-20, section 7.4.2, which adds up
 * `chunk` products a call.
 */

import { element, type Elements, MODULUS, powers } from "./field.ts";
import { between } from "./polynomials.ts";
import { bitLength, type Shape } from "./shapes.ts";

/** What a call of the gadget multiplies, pair by pair. */
type Factors = readonly (readonly [bigint, bigint])[];

/** Circuit that is zero on valid vectors: it calls for chunks of bits, then of squares. */
export class Circuit {
  readonly shape: Shape;
  /** Products that a call of the gadget adds up. */
  readonly chunk: number;

  /** `chunk` differs from its default, which makes the shortest proof, in tests only. */
  constructor(shape: Shape, chunk = shortestChunk(shape)) {
    this.shape = shape;
    this.chunk = chunk;
  }

  /** Elements of an encoded vector. */
  get encodedLength(): number {
    return this.shape.squares + this.shape.bits;
  }

  /** Calls of the gadget for bits, and elements of the randomness that both shares fix. */
  get bitCalls(): number {
    return Math.ceil(this.shape.bits / this.chunk);
  }

  /** Values that define the polynomial of a wire: a seed, one for each call, and zeros. */
  get points(): number {
    return 2 ** bitLength(this.bitCalls + Math.ceil(this.shape.squares / this.chunk));
  }

  /** Inputs of the gadget, and elements of the prover's randomness. */
  get wires(): number {
    return 2 * this.chunk;
  }

  /** Elements of a proof. */
  get proofLength(): number {
    return this.wires + 2 * this.points - 1;
  }

  /**
   * Return the proof that the circuit accepts an encoded vector: the seeds of the wires, and the
   * polynomial of the gadget at all powers but the last of the root of twice the wires' order
   * (Boneh et al., CRYPTO 2019, theorem 4.3).
   */
  proved(encoded: Elements, seeds: Elements, joint: Elements): Elements {
    const { points } = this;
    const factors = this.#factors(encoded, joint);
    const odd = between(points);
    const gadget = Array<bigint>(2 * points).fill(0n);
    for (let pair = 0; pair < this.chunk; pair++) {
      const wire = (side: 0 | 1): Elements => [
        seeds[2 * pair + side]!,
        ...factors.map((each) => each[pair]![side]),
        ...Array<bigint>(points - 1 - factors.length).fill(0n),
      ];
      const [one, other] = [wire(0), wire(1)];
      const [oneOdd, otherOdd] = [odd(one), odd(other)];
      for (let at = 0; at < points; at++) {
        gadget[2 * at]! += one[at]! * other[at]!;
        gadget[2 * at + 1]! += oneOdd[at]! * otherOdd[at]!;
      }
    }
    return [...seeds, ...gadget.slice(0, -1).map(element)];
  }

  /** Return r^k · b and b − 1 for chunks of bits, then x and x for those of the squares. */
  #factors(encoded: Elements, joint: Elements): readonly Factors[] {
    const { squares } = this.shape;
    const bits = this.#chunks(encoded.slice(squares)).map((chunk, call): Factors => {
      const weights = powers(joint[call]!, this.chunk + 1);
      return chunk.map((bit, at) => [(bit * weights[at + 1]!) % MODULUS, bit - 1n]);
    });
    const rest = this.#chunks(encoded.slice(0, squares));
    return [...bits, ...rest.map((chunk): Factors => chunk.map((each) => [each, each]))];
  }

  /** Return elements by calls of the gadget, and zeros behind them. */
  #chunks(values: Elements): readonly Elements[] {
    return Array.from({ length: Math.ceil(values.length / this.chunk) }, (_, call) =>
      Array.from({ length: this.chunk }, (_, at) => values[call * this.chunk + at] ?? 0n),
    );
  }
}

/** Return the chunk length of the shortest proof; of several, the smallest. */
function shortestChunk(shape: Shape): number {
  let found = new Circuit(shape, 1);
  for (let chunk = 2; chunk <= found.encodedLength; chunk++) {
    const other = new Circuit(shape, chunk);
    if (other.proofLength < found.proofLength) found = other;
  }
  return found.chunk;
}
