import { line, map, real } from "../fields.js";
import { composedEpsilon } from "./composition.js";
import { unit } from "./events.js";
export const release = map({
    step: line(64),
    unit,
    epsilon: real(),
    delta: real(),
    mechanism: line(256),
});
const TOLD_DELTA = 1e-6;
const LESS = 1 - 1e-5;
export function addedEpsilon(spent) {
    return spent.reduce((sum, each) => sum + each.release.epsilon, 0);
}
export function statedDelta(spent) {
    return Math.min(1, spent.reduce((sum, each) => sum + each.release.delta, 0));
}
export function epsilonAt(delta, spent) {
    delta = Math.min(delta, 1);
    const events = spent.map((each) => each.event);
    const composed = composedEpsilon(events, delta);
    return statedDelta(spent) > delta ? composed : Math.min(composed, addedEpsilon(spent));
}
export function composedCost(spent) {
    const added = addedEpsilon(spent);
    const delta = Math.max(TOLD_DELTA, ...spent.map((each) => each.release.delta));
    const composed = epsilonAt(delta, spent);
    return composed < LESS * added
        ? { epsilon: composed, delta }
        : { epsilon: added, delta: statedDelta(spent) };
}
