import { InvalidParametersError } from "./errors.js";
export function demand(holds, message) {
    if (!holds)
        throw new InvalidParametersError(message);
}
export function checkWhole(name, value, least, most) {
    demand(Number.isInteger(value) && value >= least && value <= most, `${name}=${value}: must be a whole number, from ${least} to ${most}`);
}
export function checkBetween(name, value, least, most) {
    const holds = value >= least && value <= most;
    demand(holds, `${name}=${value}: must be a number, from ${least} to ${most}`);
}
export function checkProbability(name, value) {
    demand(value > 0 && value < 1, `${name}=${value}: must be above 0 and below 1`);
}
