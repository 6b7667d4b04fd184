/**
 * Proved inputs in a sum by two operators: Prio3 under an offer.
 *
 * A report loads this module when its sum asks for a proof, and not before.
 */

import { InvalidInputError } from "../errors.ts";
import { Ballots } from "../prio3/ballots.ts";
import { type Sharded, sharded } from "../prio3/prio3.ts";
import type { Bytes } from "../wire.ts";
import type { SumParameters } from "./parameters.ts";

/**
 * Split a ballot of `length` zeros and ones into shares that prove that it is one.
 *
 * `digest` is that of the offer, `random` are 128 secret bytes, used once. Throws
 * `InvalidInputError` for anything but such a ballot.
 */
export function provedBallot(
  length: number,
  proof: SumParameters["proof"],
  digest: Bytes,
  values: ArrayLike<number>,
  reportId: Bytes,
  random: Bytes,
): Sharded {
  if (proof?.proof !== "counts") throw new InvalidInputError("only ballots are proved here");
  return sharded(new Ballots(length, proof.total), digest, values, reportId, random);
}
