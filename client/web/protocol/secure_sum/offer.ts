/** The offer of a sum by two operators, and all that a phone checks before it sends a report. */

import { canonical, sha256 } from "../canonical.ts";
import { MalformedMessageError, type RefusedError } from "../errors.ts";
import { bytes, map, nullable, type Of, real, whole } from "../fields.ts";
import { protectsAs } from "../privacy/sum_noise.ts";
import { refusal, type Rule } from "../rules.ts";
import { verified } from "../signatures.ts";
import { type Bytes, compared, hex, joined, utf8 } from "../wire.ts";
import { exchanged, keyPair } from "./exchange.ts";
import { isSameSum, sumParameters, type SumParameters } from "./parameters.ts";

const VERSION = 1;
/** HPKE in base mode with X25519, HKDF-SHA256 and AES-128-GCM. */
const SUITE = 1;
/** Seconds by which a phone's clock may differ from the helper's. */
const LARGEST_SKEW = 3600;
const HELPERS_OFFER = "earshot two operators: helper's offer";
const LEADERS_OFFER = "earshot two operators: leader's offer";

const moment = real(0, 1e12);

const offer = map({
  version: whole(),
  suite: whole(),
  sum_id: bytes(16),
  leader: bytes(32),
  helper: bytes(32),
  key: bytes(32),
  task: bytes(32),
  parameters: sumParameters,
  opens: moment,
  closes: moment,
  answer_until: moment,
});

/** Offer of one sum, which both operators sign. */
export type Offer = Of<typeof offer>;

/** The task that opens a sum, inside the one that begins a part; the offer is nil in digests. */
export const sendReport = map({
  sum_id: bytes(16),
  index: whole(0, 2 ** 32 - 1),
  offer: nullable(map({ offer, helper: bytes(64), leader: bytes(64) })),
});

export type SendReport = Of<typeof sendReport>;

/** Operators that an app names, as Ed25519 public keys of 32 bytes; a server never names one. */
export interface Operators {
  readonly leaders: readonly Bytes[];
  readonly helpers: readonly Bytes[];
}

/** Load what proves inputs. */
export function loadProofs(): Promise<typeof import("./proofs.ts")> {
  return import("./proofs.ts");
}

/** Return the digest that both operators sign, and that binds reports and totals. */
export async function offerDigest(value: Offer): Promise<Bytes> {
  return sha256(canonical(offer, value));
}

/**
 * Return every reason for which a phone sends no report under an offer, in documented order.
 *
 * `expected` are the parameters as the phone derives them from its phase, `told` the bytes that
 * must be the same for all phones (`told` of `messages`), `now` its clock, in seconds since 1970,
 * and `load` loads what proves inputs, if this sum asks for that.
 */
export async function refusalsOfOffer(
  opening: SendReport,
  expected: SumParameters,
  told: Bytes,
  operators: Operators,
  now: number,
  load: () => Promise<unknown> = loadProofs,
): Promise<readonly RefusedError[]> {
  const signed = opening.offer;
  if (signed === null) return [refusal("wrong_offer", "the task has no offer")];
  const { offer: stated, helper, leader } = signed;
  const found: RefusedError[] = [];
  const demand = (holds: boolean, rule: Rule, why: string): void => {
    if (!holds) found.push(refusal(rule, why));
  };
  const proves = expected.proof === null || (await load().then(Boolean, () => false));
  demand(proves, "proofs", "what proves its inputs is not here");
  for (const [role, key, known] of [
    ["leader", stated.leader, operators.leaders],
    ["helper", stated.helper, operators.helpers],
  ] as const) {
    const isKnown = known.some((each) => compared(each, key) === 0);
    demand(isKnown, "unknown_helper", `this app names no ${role} ${hex(key.subarray(0, 8))}…`);
  }
  const areTwo = compared(stated.leader, stated.helper) !== 0;
  demand(areTwo, "unknown_helper", "leader and helper are the same");
  const digest = await offerDigest(stated);
  const areSigned =
    (await isSigned(stated.helper, HELPERS_OFFER, digest, helper)) &&
    (await isSigned(stated.leader, LEADERS_OFFER, digest, leader));
  demand(areSigned, "wrong_offer", "not signed by both operators");
  const { noise, least, window } = stated.parameters;
  demand(
    protectsAs(noise, expected.noise),
    "weak_noise",
    "less noise than the phase promises, or of another law",
  );
  demand(
    least >= expected.least,
    "too_few",
    `a total of ${least} reports; at least ${expected.least} are accepted`,
  );
  demand(
    stated.version === VERSION &&
      stated.suite === SUITE &&
      compared(stated.sum_id, opening.sum_id) === 0 &&
      compared(stated.task, await sha256(told)) === 0 &&
      isSameSum(stated.parameters, expected),
    "wrong_offer",
    "the offer is for another task, sum or version than this one",
  );
  demand(await seals(stated.key), "wrong_offer", "anybody can open what is sealed to its key");
  const { opens, closes } = stated;
  demand(
    opens - LARGEST_SKEW <= now &&
      now <= closes + LARGEST_SKEW &&
      Math.abs(closes - opens - window) <= 1e-3,
    "closed",
    "reports of this sum are not accepted now",
  );
  return found;
}

/** Return whether a key is one of X25519, and not of low order. */
async function seals(key: Bytes): Promise<boolean> {
  const own = await keyPair();
  try {
    await exchanged(own.privateKey, key);
    return true;
  } catch (error) {
    if (!(error instanceof MalformedMessageError)) throw error;
    return false;
  }
}

async function isSigned(key: Bytes, tag: string, digest: Bytes, signature: Bytes) {
  return verified(key, signature, joined(utf8(tag), await sha256(digest)));
}
