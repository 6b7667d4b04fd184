import { InvalidInputError, RefusedError, WrongStateError } from "../protocol/errors.js";
import { limitsOf } from "../protocol/phases/acceptance.js";
import { compared, hex } from "../protocol/wire.js";
export function policyOf(leader, helper, own = {}, tellRefusals = true) {
    const [theirs, others] = [read("leader", leader), read("helper", helper)];
    if (compared(theirs, others) === 0) {
        throw new InvalidInputError("leader and helper are two organizations, not one key");
    }
    const operators = { leaders: [theirs], helpers: [others] };
    return { limits: limitsOf(own), operators, tellRefusals };
}
function read(who, given) {
    const digits = typeof given === "string" ? given : hex(given);
    if (!/^[0-9a-f]{64}$/i.test(digits)) {
        const said = `the ${who}'s key must be 32 bytes, or the 64 hexadecimal digits of them`;
        throw new InvalidInputError(`${said}, not '${digits.slice(0, 70)}'`);
    }
    return Uint8Array.from({ length: 32 }, (_, at) => parseInt(digits.slice(2 * at, 2 * at + 2), 16));
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
