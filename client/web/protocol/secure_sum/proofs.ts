/**
 * Proved inputs in a sum by two operators: Prio3 under an offer.
 *
 * A report loads this module when its sum asks for a proof, and not before.
 */

import { Circuit } from "../prio3/circuit.ts";
import { type Sharded, sharded } from "../prio3/prio3.ts";
import { type Proof, shapeOf } from "../prio3/shapes.ts";
import type { Bytes } from "../wire.ts";

/**
 * Split an input of `length` entries into shares that prove that it is valid.
 *
 * `digest` is that of the offer, `random` are 128 secret bytes, used once. Throws
 * `InvalidInputError` for an invalid input, and `InvalidParametersError` for a proof that describes
 * no input of this length.
 */
export function provedInput(
  proof: Proof,
  length: number,
  digest: Bytes,
  values: ArrayLike<number>,
  reportId: Bytes,
  random: Bytes,
): Sharded {
  const circuit = new Circuit(shapeOf(proof, length));
  return sharded(circuit, digest, values, reportId, random);
}
