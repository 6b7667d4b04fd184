/** Inputs as words modulo 2^w, and words packed at w bits an entry. */

import { InvalidInputError } from "../errors.ts";
import type { Bytes } from "../wire.ts";
import { lengthOf, type SumParameters, widthOf } from "./parameters.ts";

/**
 * Vectors modulo 2^16, 2^32 or 2^64: words whose arithmetic wraps.
 *
 * Key streams are read into them in native byte order, which is little-endian in every browser.
 */
export type Words =
  ReturnType<(typeof Uint16Array | typeof Uint32Array | typeof BigUint64Array)["of"]>;

/**
 * Return whole numbers, row by row, as words: a negative −x is 2^w − x.
 *
 * Throws `InvalidInputError` for a wrong number of entries, one that is not whole or beyond the
 * bound.
 */
export function encodeInput(values: ArrayLike<number>, parameters: SumParameters): Words {
  const words = wordsOf(parameters, lengthOf(parameters));
  if (values.length !== words.length) {
    throw new InvalidInputError(`${values.length} entries; this sum takes ${words.length}`);
  }
  const bound = Number(parameters.bound);
  for (let at = 0; at < words.length; at++) {
    const value = values[at]!;
    if (!Number.isSafeInteger(value) || Math.abs(value) > bound) {
      throw new InvalidInputError(`entry ${value} is not whole or exceeds the bound ${bound}`);
    }
    words[at] = words instanceof BigUint64Array ? BigInt(value) : value;
  }
  return words;
}

/** Subtract the words of a key stream, which are of the same type, from a vector, in place. */
export function subtract(words: Words, stream: Words): void {
  const [to, from] = [words, stream] as [Uint32Array, Uint32Array]; // or of big whole numbers both
  for (let at = 0; at < to.length; at++) to[at]! -= from[at]!;
}

/** Return words of zeros, or those of a buffer: the narrowest that hold the sum's width. */
export function wordsOf(parameters: SumParameters, content: number | ArrayBuffer): Words {
  const width = widthOf(parameters);
  const kind = width > 32 ? BigUint64Array : width > 16 ? Uint32Array : Uint16Array;
  return new kind(content as ArrayBuffer);
}

/** Pack the low `bits` bits of every word without gaps, low bit first. */
export function packWords(words: Words, bits: number): Bytes {
  const packed = new Uint8Array(Math.ceil((words.length * bits) / 8));
  let at = 0; // in bits
  const put = (value: number, count: number): void => {
    // Bitwise operators would cut at 32 bits; a word shifted by 7 stays far below 2^53.
    let rest = (value % 2 ** count) * 2 ** (at % 8);
    for (let byte = at >> 3; rest > 0; byte++, rest = Math.floor(rest / 256)) {
      packed[byte]! |= rest % 256;
    }
    at += count;
  };
  for (const word of words) {
    if (typeof word === "number") put(word, bits);
    else {
      put(Number(word & 0xffffffffn), 32);
      put(Number(word >> 32n), bits - 32);
    }
  }
  return packed;
}
