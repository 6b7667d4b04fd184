import { canonical, sha256 } from "../canonical.js";
import { MalformedMessageError, RefusedError } from "../errors.js";
import { bytes, map, nullable, real, whole } from "../fields.js";
import { protectsAs } from "../privacy/sum_noise.js";
import { verified } from "../signatures.js";
import { compared, hex, joined, utf8 } from "../wire.js";
import { exchanged } from "./exchange.js";
import { isSameSum, sumParameters } from "./parameters.js";
const VERSION = 1;
const SUITE = 1;
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
export const sendReport = map({
    sum_id: bytes(16),
    index: whole(0, 2 ** 32 - 1),
    offer: nullable(map({ offer, helper: bytes(64), leader: bytes(64) })),
});
export async function offerDigest(value) {
    return sha256(canonical(offer, value));
}
export async function refusalsOfOffer(opening, expected, told, operators, now) {
    const signed = opening.offer;
    if (signed === null)
        return [refusal("wrong_offer", "the task has no offer")];
    const { offer: stated, helper, leader } = signed;
    const found = [];
    const demand = (holds, rule, why) => {
        if (!holds)
            found.push(refusal(rule, why));
    };
    demand(expected.ones === null, "proofs", "this phone cannot prove its ballots");
    for (const [role, key, known] of [
        ["leader", stated.leader, operators.leaders],
        ["helper", stated.helper, operators.helpers],
    ]) {
        const isKnown = known.some((each) => compared(each, key) === 0);
        demand(isKnown, "unknown_helper", `this app names no ${role} ${hex(key.subarray(0, 8))}…`);
    }
    const areTwo = compared(stated.leader, stated.helper) !== 0;
    demand(areTwo, "unknown_helper", "leader and helper are the same");
    const digest = await offerDigest(stated);
    const areSigned = (await isSigned(stated.helper, HELPERS_OFFER, digest, helper)) &&
        (await isSigned(stated.leader, LEADERS_OFFER, digest, leader));
    demand(areSigned, "wrong_offer", "not signed by both operators");
    const { noise, least, window } = stated.parameters;
    demand(protectsAs(noise, expected.noise), "weak_noise", "operators would add less noise than the phase promises, or noise of another law");
    demand(least >= expected.least, "too_few", `a total of ${least} reports; at least ${expected.least} are accepted`);
    demand(stated.version === VERSION &&
        stated.suite === SUITE &&
        compared(stated.sum_id, opening.sum_id) === 0 &&
        compared(stated.task, await sha256(told)) === 0 &&
        isSameSum(stated.parameters, expected), "wrong_offer", "the offer is for another task, sum or version than this one");
    demand(await seals(stated.key), "wrong_offer", "what is sealed to its key, anybody can open");
    const { opens, closes } = stated;
    demand(opens - LARGEST_SKEW <= now &&
        now <= closes + LARGEST_SKEW &&
        Math.abs(closes - opens - window) <= 1e-3, "closed", "reports of this sum are taken at another time than now");
    return found;
}
function refusal(rule, why) {
    return new RefusedError(`${rule}: ${why}`, rule);
}
async function seals(key) {
    const own = (await crypto.subtle.generateKey("X25519", false, ["deriveBits"]));
    try {
        await exchanged(own.privateKey, key);
        return true;
    }
    catch (error) {
        if (!(error instanceof MalformedMessageError))
            throw error;
        return false;
    }
}
async function isSigned(key, tag, digest, signature) {
    return verified(key, signature, joined(utf8(tag), await sha256(digest)));
}
