/** The policy of a phone: what it agrees to, whoever asks, and the operators that its app names. */

import { InvalidInputError, RefusedError, WrongStateError } from "../protocol/errors.ts";
import { type Limits, limitsOf } from "../protocol/phases/acceptance.ts";
import type { Ledger } from "../protocol/privacy/ledger.ts";
import type { Operators } from "../protocol/secure_sum/offer.ts";
import { type Bytes, compared } from "../protocol/wire.ts";

/** Limits that a phone keeps, the operators of its sums, and whether it tells why it refuses. */
export interface Policy {
  readonly limits: Limits;
  readonly operators: Operators;
  /** Whether the server is told the name of the rule by which a phase is refused, and no more. */
  readonly tellRefusals: boolean;
}

/**
 * Return the policy of a phone with these operators, and an app's own limits in place of some.
 *
 * `leader` and `helper` are Ed25519 keys of 32 bytes, of two organizations. Throws
 * `InvalidInputError` for other keys, and `InvalidParametersError` for a limit that is none.
 */
export function policyOf(
  leader: Bytes,
  helper: Bytes,
  own: Partial<Limits> = {},
  tellRefusals = true,
): Policy {
  if (leader.length !== 32 || helper.length !== 32 || compared(leader, helper) === 0) {
    throw new InvalidInputError("leader and helper have a key of 32 bytes each, not one key");
  }
  const operators = { leaders: [leader], helpers: [helper] };
  return { limits: limitsOf(own), operators, tellRefusals };
}

/** Throw the first of some refusals, if there is one. */
export function throwFirst(refusals: Iterable<RefusedError>): void {
  for (const refused of refusals) throw refused;
}

/** Refuse to release steps of a phase that are in the ledger. */
export function checkUnreleased(ledger: Ledger, phase: Bytes, steps: readonly string[]): void {
  try {
    ledger.checkUnreleased(phase, steps);
  } catch (error) {
    if (!(error instanceof WrongStateError)) throw error;
    throw new RefusedError(error.message, "repeated");
  }
}
