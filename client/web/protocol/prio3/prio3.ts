/**
 * Shares of inputs with proofs that these are valid, for two operators: Prio3 as in
 * draft-irtf-cfrg-vdaf-20, section 7.2, with two aggregators and one proof, as clients have it.
 *
 * Loaded when a sum asks for proofs, and not before.
 */

import type { Bytes } from "../wire.ts";
import { type Ballots, bitLength } from "./ballots.ts";
import { type Elements, encode, element, subtracted } from "./field.ts";
import { between } from "./polynomials.ts";
import { derived, expanded } from "./xof.ts";

const SEED_BYTES = 32;
/** Version in the tags of drafts 18, 19 and 20, between which no message changed. */
const VERSION = 18;
const PROOFS = Uint8Array.of(1);
const [LEADER, HELPER] = [Uint8Array.of(0), Uint8Array.of(1)] as const;
/** Purposes of derived values, in their tags. */
const Usage = { VECTOR: 1, PROOF: 2, JOINT: 3, PROVER: 4, SEED: 6, PART: 7 } as const;

/** A client's report: a share for each operator, and what both get. */
export interface Sharded {
  /** The public share: both parts of the randomness that the shares fix. */
  readonly public: Bytes;
  /** The leader's: shares of vector and proof, and a blind. */
  readonly share: Bytes;
  /** The helper's: the seed of its shares, and a blind, within the client's randomness. */
  readonly seed: Bytes;
}

/**
 * Split an input into shares that prove that it is valid.
 *
 * `context` describes the sum, `nonce` is the public number of the report, 16 bytes, and `random`
 * are 128 secret bytes, used once. `chunk` differs from its default in tests only.
 *
 * Throws `InvalidInputError` for an invalid input.
 */
export function sharded(
  circuit: Ballots,
  context: Bytes,
  values: ArrayLike<number>,
  nonce: Bytes,
  random: Bytes,
  chunk = chunkLength(circuit.encodedLength),
): Sharded {
  const [seed, helperBlind, leaderBlind, proverSeed] = [0, 1, 2, 3].map((at) =>
    random.subarray(at * SEED_BYTES, (at + 1) * SEED_BYTES),
  ) as [Bytes, Bytes, Bytes, Bytes];
  const tag = (usage: number): Bytes => tagOf(circuit.algorithm, usage, context);
  const calls = Math.ceil(circuit.encodedLength / chunk);

  const encoded = circuit.encode(values);
  const helpers = expanded(encoded.length, tag(Usage.VECTOR), seed, HELPER);
  const leaders = subtracted(encoded, helpers);
  const part = (role: Bytes, blind: Bytes, share: Elements): Bytes =>
    derived(SEED_BYTES, tag(Usage.PART), blind, role, nonce, encode(share));
  const parts = [part(LEADER, leaderBlind, leaders), part(HELPER, helperBlind, helpers)] as const;
  const jointSeed = derived(SEED_BYTES, tag(Usage.SEED), new Uint8Array(SEED_BYTES), ...parts);
  const joint = expanded(calls, tag(Usage.JOINT), jointSeed, PROOFS);

  const padded = [...encoded, ...Array<bigint>(calls * chunk - encoded.length).fill(0n)];
  const factors = joint.map((each, at) =>
    circuit.factors(padded.slice(at * chunk, (at + 1) * chunk), each),
  );
  const seeds = expanded(2 * chunk, tag(Usage.PROVER), proverSeed, PROOFS);
  const proof = proved(factors, seeds);
  const helpersProof = expanded(proof.length, tag(Usage.PROOF), seed, PROOFS, HELPER);
  const leadersProof = subtracted(proof, helpersProof);
  return {
    public: Uint8Array.from([...parts[0], ...parts[1]]),
    share: Uint8Array.from([...encode([...leaders, ...leadersProof]), ...leaderBlind]),
    seed: random.subarray(0, 2 * SEED_BYTES),
  };
}

/**
 * Return the proof that sums of products are those of a circuit: the seeds of the wires, and the
 * polynomial of the gadget at all powers but the last of the root of twice the wires' order.
 *
 * `factors` has what each call multiplies, pair by pair (Boneh et al., CRYPTO 2019, theorem 4.3).
 */
function proved(
  factors: readonly (readonly (readonly [bigint, bigint])[])[],
  seeds: Elements,
): Elements {
  const points = pointsOf(factors.length);
  const odd = between(points);
  const gadget = Array<bigint>(2 * points).fill(0n);
  for (let pair = 0; 2 * pair < seeds.length; pair++) {
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

/** Return the values that define a wire: a seed, one for each call, and zeros to a power of two. */
function pointsOf(calls: number): number {
  return 2 ** bitLength(calls);
}

/** Return the chunk length of the shortest proof; of several, the smallest. */
function chunkLength(encodedLength: number): number {
  let [found, shortest] = [0, Infinity];
  for (let chunk = 1; chunk <= encodedLength; chunk++) {
    const length = 2 * chunk + 2 * pointsOf(Math.ceil(encodedLength / chunk)) - 1;
    if (length < shortest) [found, shortest] = [chunk, length];
  }
  return found;
}

function tagOf(algorithm: number, usage: number, context: Bytes): Bytes {
  // Version, class of algorithm (a VDAF), and big-endian numbers of the algorithm and the purpose.
  const numbers = new DataView(new ArrayBuffer(8));
  numbers.setUint8(0, VERSION);
  numbers.setUint32(2, algorithm);
  numbers.setUint16(6, usage);
  return Uint8Array.from([...new Uint8Array(numbers.buffer), ...context]);
}
