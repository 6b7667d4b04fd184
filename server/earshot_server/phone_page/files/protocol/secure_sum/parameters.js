import { canonical } from "../canonical.js";
import { checkWhole, demand } from "../checks.js";
import { large, list, map, nullable, real, whole } from "../fields.js";
import { LARGEST_LENGTH } from "../privacy/mechanisms.js";
import { bitLength, checkNoise, noiseOfOperators, reach } from "../privacy/sum_noise.js";
import { compared } from "../wire.js";
const LARGEST_PHONES = 10 ** 8;
const LARGEST_RANK = 8;
export const sumParameters = map({
    phones: whole(),
    shape: list(whole(), 2 ** 16),
    bound: large,
    noise: noiseOfOperators,
    least: whole(),
    window: real(),
    ones: nullable(whole()),
});
export function lengthOf({ shape }) {
    return shape.reduce((length, size) => length * size, 1);
}
export function widthOf(parameters) {
    const { phones, bound, noise } = parameters;
    const bits = bitLength(BigInt(phones) * bound + reach(noise, lengthOf(parameters)));
    demand(bits <= 63, "phones · bound and the noise do not fit 64 bits: fewer phones, or less noise");
    return bits + 1;
}
export function checkSum(parameters) {
    const { phones, shape, bound, noise, least, window, ones } = parameters;
    checkWhole("phones", phones, 3, LARGEST_PHONES);
    checkWhole("the number of dimensions", shape.length, 0, LARGEST_RANK);
    for (const size of shape)
        checkWhole("a dimension of shape", size, 1, LARGEST_LENGTH);
    checkWhole("length", lengthOf(parameters), 1, LARGEST_LENGTH);
    demand(bound >= 1n && bound <= 2n ** 62n, `bound=${bound}: must be from 1 to 2^62`);
    demand(window > 0 && Number.isFinite(window), `window=${window}: must be above 0`);
    checkWhole("least", least, 2, phones);
    if (ones !== null)
        checkWhole("ones", ones, 1, lengthOf(parameters));
    checkNoise(noise);
    widthOf(parameters);
}
export function isSameSum(one, other) {
    return compared(canonical(sumParameters, one), canonical(sumParameters, other)) === 0;
}
