import { demand } from "../checks.js";
import { large, map, tagged } from "../fields.js";
const FINENESS = 2 ** 16;
const LARGEST = 2n ** 62n;
export const noiseOfOperators = tagged("law", {
    "discrete-laplace": map({ fine_scale: large }),
    "discrete-gaussian": map({ fine_variance: large }),
});
export function laplace(scale) {
    return { law: "discrete-laplace", fine_scale: BigInt(Math.ceil(scale * FINENESS)) };
}
export function gaussian(variance) {
    return { law: "discrete-gaussian", fine_variance: BigInt(Math.ceil(variance * FINENESS)) };
}
export function fineness(noise) {
    return noise.law === "discrete-laplace" ? noise.fine_scale : noise.fine_variance;
}
export function checkNoise(noise) {
    const fine = fineness(noise);
    demand(fine >= 1n && fine <= LARGEST, `${noise.law}: ${fine} in 2^-16; must be 1 to 2^62`);
}
export function protectsAs(noise, other) {
    return noise.law === other.law && fineness(noise) >= fineness(other);
}
export function reach(noise, length) {
    const bits = BigInt(80 + bitLength(BigInt(length)));
    const tenth = BigInt(10 * FINENESS);
    return noise.law === "discrete-laplace"
        ? 2n * ((7n * noise.fine_scale * (bits + 2n)) / tenth + 1n)
        : root((4n * noise.fine_variance * (bits + 1n) * 7n) / tenth) + 1n;
}
export function eventOf(noise, l1, l2) {
    const stated = Number(fineness(noise)) / FINENESS;
    return noise.law === "discrete-laplace"
        ? { event: "pure", epsilon: l1 / stated, times: 1 }
        : { event: "zcdp", rho: (l2 * l2) / (2 * stated) };
}
export function bitLength(value) {
    return value.toString(2).length;
}
function root(value) {
    if (value < 2n)
        return value;
    let found = 1n << BigInt((bitLength(value) + 1) >> 1);
    for (;;) {
        const next = (found + value / found) >> 1n;
        if (next >= found)
            return found;
        found = next;
    }
}
