import { InvalidInputError, RefusedError, WrongStateError } from "../protocol/errors.js";
import { limitsOf } from "../protocol/phases/acceptance.js";
import { compared } from "../protocol/wire.js";
export function policyOf(leader, helper, own = {}, tellRefusals = true) {
    if (leader.length !== 32 || helper.length !== 32 || compared(leader, helper) === 0) {
        throw new InvalidInputError("leader and helper have a key of 32 bytes each, not one key");
    }
    const operators = { leaders: [leader], helpers: [helper] };
    return { limits: limitsOf(own), operators, tellRefusals };
}
export function throwFirst(refusals) {
    for (const refused of refusals)
        throw refused;
}
export function checkUnreleased(ledger, phase, steps) {
    try {
        ledger.checkUnreleased(phase, steps);
    }
    catch (error) {
        if (!(error instanceof WrongStateError))
            throw error;
        throw new RefusedError(error.message, "repeated");
    }
}
