/** The policy of a phone: what it agrees to, and the operators that its app names. */

import { InvalidInputError, RefusedError, WrongStateError } from "../protocol/errors.ts";
import { type Limits, limitsOf } from "../protocol/phases/acceptance.ts";
import type { Ledger } from "../protocol/privacy/ledger.ts";
import type { Operators } from "../protocol/secure_sum/offer.ts";
import { type Bytes, compared, hex } from "../protocol/wire.ts";

/** Limits of a phone, operators of its sums, and whether it reports refusals. */
export interface Policy {
  readonly limits: Limits;
  readonly operators: Operators;
  /** Whether the server is sent the name of the rule that refuses a phase, and no more. */
  readonly tellRefusals: boolean;
}

/** Ed25519 key of an operator: 32 bytes, or their 64 hexadecimal digits as operators print them. */
export type OperatorKey = Bytes | string;

/**
 * Return the policy of a phone with these operators, and an app's own limits over the default.
 *
 * `leader` and `helper` are keys of two organizations. Throws `InvalidInputError` for invalid or
 * equal keys, and `InvalidParametersError` for an invalid limit.
 */
export function policyOf(
  leader: OperatorKey,
  helper: OperatorKey,
  own: Partial<Limits> = {},
  tellRefusals = true,
): Policy {
  const [theirs, others] = [read("leader", leader), read("helper", helper)];
  if (compared(theirs, others) === 0) {
    throw new InvalidInputError("leader and helper are two organizations, not one key");
  }
  const operators = { leaders: [theirs], helpers: [others] };
  return { limits: limitsOf(own), operators, tellRefusals };
}

function read(who: string, given: OperatorKey): Bytes {
  const digits = typeof given === "string" ? given : hex(given);
  if (!/^[0-9a-f]{64}$/i.test(digits)) {
    const said = `the ${who}'s key must be 32 bytes, or the 64 hexadecimal digits of them`;
    throw new InvalidInputError(`${said}, not '${digits.slice(0, 70)}'`);
  }
  return Uint8Array.from(digits.match(/../g)!, (byte) => parseInt(byte, 16));
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
