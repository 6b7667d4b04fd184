import { InvalidInputError } from "../errors.js";
import { lengthOf, widthOf } from "./parameters.js";
export function encodeInput(values, parameters) {
    const words = wordsOf(parameters, lengthOf(parameters));
    if (values.length !== words.length) {
        throw new InvalidInputError(`${values.length} entries; this sum takes ${words.length}`);
    }
    const bound = Number(parameters.bound);
    for (let at = 0; at < words.length; at++) {
        const value = values[at];
        if (!Number.isSafeInteger(value) || Math.abs(value) > bound) {
            throw new InvalidInputError(`entry ${value} is not whole or exceeds the bound ${bound}`);
        }
        words[at] = words instanceof BigUint64Array ? BigInt(value) : value;
    }
    return words;
}
export function subtract(words, stream) {
    if (words instanceof BigUint64Array) {
        for (let at = 0; at < words.length; at++)
            words[at] -= stream[at];
    }
    else {
        for (let at = 0; at < words.length; at++)
            words[at] -= stream[at];
    }
}
export function wordsOf(parameters, length) {
    const width = widthOf(parameters);
    if (width > 32)
        return new BigUint64Array(length);
    return width > 16 ? new Uint32Array(length) : new Uint16Array(length);
}
export function packWords(words, bits) {
    const packed = new Uint8Array(Math.ceil((words.length * bits) / 8));
    let at = 0;
    const put = (value, count) => {
        let rest = (value % 2 ** count) * 2 ** (at % 8);
        for (let byte = at >> 3; rest > 0; byte++, rest = Math.floor(rest / 256)) {
            packed[byte] |= rest % 256;
        }
        at += count;
    };
    for (const word of words) {
        if (typeof word === "number")
            put(word, bits);
        else {
            put(Number(word & 0xffffffffn), 32);
            put(Number(word >> 32n), bits - 32);
        }
    }
    return packed;
}
