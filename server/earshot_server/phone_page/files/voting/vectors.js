import { InvalidInputError } from "../protocol/errors.js";
import { GRID } from "../protocol/privacy/mechanisms.js";
import { rint } from "./geometry.js";
const COUNTED = 0.25;
const UNCOUNTED = Math.sqrt(1 - COUNTED ** 2);
const ROUNDOFF = 2 ** -20;
export function counted(sums, columns, counts) {
    const wide = new Float64Array((sums.length / columns) * (columns + 1));
    for (let row = 0; row * columns < sums.length; row++) {
        const own = sums.subarray(row * columns, (row + 1) * columns);
        wide.set(own.map((value) => UNCOUNTED * value), row * (columns + 1));
        wide[row * (columns + 1) + columns] = COUNTED * counts[row];
    }
    return wide;
}
export function bounded(values, counts) {
    const norm = Math.sqrt(counts.reduce((sum, count) => sum + count * count, 0));
    return norm ? values.map((value) => value / norm) : new Float64Array(values.length);
}
export function quantized(vector) {
    const units = unitSteps(vector.length);
    let sum = 0;
    const steps = vector.map((value) => {
        const step = rint(value * units);
        sum += step * step;
        return step;
    });
    if (!(sum <= GRID ** 2)) {
        throw new InvalidInputError("a vector must be finite and at most 1 long to be summed");
    }
    return Int32Array.from(steps);
}
export function unitSteps(length) {
    return GRID - Math.sqrt(length) / 2 - ROUNDOFF;
}
