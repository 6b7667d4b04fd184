const LN2_HIGH = 2977044471 / 2 ** 32;
const LN2_LOW = 1.9082149292705878e-10;
const ROOT = Math.SQRT2;
export function exp(x) {
    if (Number.isNaN(x))
        return x;
    if (x > 709.79)
        return Infinity;
    if (x < -745.14)
        return 0;
    const twos = Math.floor(x / Math.LN2 + 0.5);
    const rest = x - twos * LN2_HIGH - twos * LN2_LOW;
    const half = Math.trunc(twos / 2);
    return (1 + series(rest)) * power(half) * power(twos - half);
}
export function expm1(x) {
    return Math.abs(x) < 0.35 ? series(x) : exp(x) - 1;
}
export function log(x) {
    if (!(x > 0) || x === Infinity)
        return x === 0 ? -Infinity : x > 0 ? x : NaN;
    let twos = 0;
    if (x < 2 ** -1022) {
        x *= 2 ** 54;
        twos = -54;
    }
    const bits = new DataView(new ArrayBuffer(8));
    bits.setFloat64(0, x);
    const exponent = (bits.getUint16(0) >> 4) - 1023;
    bits.setUint16(0, (bits.getUint16(0) & 0x800f) | 0x3ff0);
    let part = bits.getFloat64(0);
    twos += exponent;
    if (part > ROOT) {
        part /= 2;
        twos += 1;
    }
    return twos * LN2_HIGH + (twos * LN2_LOW + ratio(part - 1));
}
export function log1p(x) {
    return Math.abs(x) < 0.3 ? ratio(x) : log(1 + x);
}
export function logaddexp(x, y) {
    const larger = Math.max(x, y);
    return larger === -Infinity ? larger : larger + log1p(exp(Math.min(x, y) - larger));
}
function series(x) {
    let sum = 0;
    for (let term = 17; term > 1; term--)
        sum = ((sum + 1) * x) / term;
    return (sum + 1) * x;
}
function ratio(x) {
    const s = x / (2 + x);
    const square = s * s;
    let sum = 0;
    for (let odd = 29; odd > 1; odd -= 2)
        sum = (sum + 1 / odd) * square;
    return 2 * s * (1 + sum);
}
function power(n) {
    const bits = new DataView(new ArrayBuffer(8));
    bits.setUint16(0, (n + 1023) << 4);
    return bits.getFloat64(0);
}
