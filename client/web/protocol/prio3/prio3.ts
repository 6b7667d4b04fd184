/**
 * Shares of inputs with proofs that these are valid, for two operators: Prio3 as in
 * draft-irtf-cfrg-vdaf-20, section 7.2, with two aggregators and one proof, as clients have it.
 *
 * Loaded when a sum asks for proofs, and not before.
 */

import type { Bytes } from "../wire.ts";
import type { Circuit } from "./circuit.ts";
import { encode, subtracted } from "./field.ts";
import { derived, expanded } from "./xof.ts";

const SEED_BYTES = 32;
/** Version in the tags of drafts 18, 19 and 20, between which no message changed. */
const VERSION = 18;
const PROOFS = Uint8Array.of(1);
const [LEADER, HELPER] = [Uint8Array.of(0), Uint8Array.of(1)] as const;
/** Purposes of derived values, in their tags. */
const Usage = {
  VECTOR: 1,
  PROOF: 2,
  JOINT: 3,
  PROVER: 4,
  SEED: 6,
  PART: 7,
  SIGNS: 8,
  SIGNS_SEED: 9,
  SIGNS_PART: 10,
} as const;

/** A client's report: a share for each operator, and what both get. */
export interface Sharded {
  /**
   * The public share: both parts of the randomness that the shares fix, and before them those that
   * fix signs, if there are checks by signs.
   */
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
 * are 128 secret bytes, used once.
 *
 * Throws `InvalidInputError` for an invalid input.
 */
export function sharded(
  circuit: Circuit,
  context: Bytes,
  input: ArrayLike<number>,
  nonce: Bytes,
  random: Bytes,
): Sharded {
  const { shape } = circuit;
  const [seed, helperBlind, leaderBlind, proverSeed] = [0, 1, 2, 3].map((at) =>
    random.subarray(at * SEED_BYTES, (at + 1) * SEED_BYTES),
  ) as [Bytes, Bytes, Bytes, Bytes];
  const tag = (usage: number): Bytes => tagOf(shape.algorithm, usage, context);
  const values = Array.from(input);
  const fixed = shape.fixed(values);
  const helpers = expanded(circuit.encodedLength, tag(Usage.VECTOR), seed, HELPER);

  const partsOf = (usage: number, leader: Bytes[], helper: Bytes[]): Bytes[] => [
    derived(SEED_BYTES, tag(usage), leaderBlind, LEADER, nonce, ...leader),
    derived(SEED_BYTES, tag(usage), helperBlind, HELPER, nonce, ...helper),
  ];
  const seedOf = (usage: number, parts: Bytes[]): Bytes =>
    derived(SEED_BYTES, tag(usage), new Uint8Array(SEED_BYTES), ...parts);

  // Both shares of the entries are fixed before signs are known, if there are checks by signs.
  const entries = shape.signBytes > 0 ? shape.length : 0;
  let signsParts: Bytes[] = [];
  let encoded = fixed;
  if (entries > 0) {
    signsParts = partsOf(
      Usage.SIGNS_PART,
      [encode(subtracted(fixed.slice(0, entries), helpers))],
      [encode(helpers.slice(0, entries))],
    );
    const signsSeed = seedOf(Usage.SIGNS_SEED, signsParts);
    const drawn = derived(shape.signBytes, tag(Usage.SIGNS), signsSeed, PROOFS);
    encoded = [...fixed, ...shape.signed(values, drawn)];
  }
  const leaders = subtracted(encoded, helpers);
  const parts = partsOf(
    Usage.PART,
    [...signsParts.slice(0, 1), encode(leaders.slice(entries))],
    [...signsParts.slice(1), encode(helpers.slice(entries))],
  );
  const jointSeed = seedOf(Usage.SEED, parts);
  const joint = expanded(circuit.bitCalls, tag(Usage.JOINT), jointSeed, PROOFS);
  const seeds = expanded(circuit.wires, tag(Usage.PROVER), proverSeed, PROOFS);
  const proof = circuit.proved(encoded, seeds, joint);
  const helpersProof = expanded(proof.length, tag(Usage.PROOF), seed, PROOFS, HELPER);
  const leadersProof = subtracted(proof, helpersProof);
  return {
    public: Uint8Array.from([...signsParts, ...parts].flatMap((part) => [...part])),
    share: Uint8Array.from([...encode([...leaders, ...leadersProof]), ...leaderBlind]),
    seed: random.subarray(0, 2 * SEED_BYTES),
  };
}

function tagOf(algorithm: number, usage: number, context: Bytes): Bytes {
  // Version, class of algorithm (a VDAF), and big-endian numbers of the algorithm and the purpose.
  const numbers = new DataView(new ArrayBuffer(8));
  numbers.setUint8(0, VERSION);
  numbers.setUint32(2, algorithm);
  numbers.setUint16(6, usage);
  return Uint8Array.from([...new Uint8Array(numbers.buffer), ...context]);
}
