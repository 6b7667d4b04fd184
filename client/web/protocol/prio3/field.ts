/**
 * Field128 of the VDAF draft: whole numbers below p = 2^66 · 4611686018427387897 + 1, and their
 * bytes (draft-irtf-cfrg-vdaf-20, section 6.1.4).
 *
 * BigInt does not compute in constant time: how long a proof takes may depend on the input. Python's
 * phone computes by a fixed sequence of operations instead.
 */

import type { Bytes } from "../wire.ts";

export const MODULUS = 2n ** 66n * 4611686018427387897n + 1n;

/** Elements, in order. */
export type Elements = readonly bigint[];

/** Return the element of a whole number. */
export function element(number: bigint): bigint {
  const rest = number % MODULUS;
  return rest < 0n ? rest + MODULUS : rest;
}

/** Return the elements one after the other, 16 bytes each, lowest byte first. */
export function encode(elements: Elements): Bytes {
  // In native byte order, which is little-endian in every browser.
  const halves = new BigUint64Array(2 * elements.length);
  elements.forEach((each, at) => {
    halves[2 * at] = each;
    halves[2 * at + 1] = each >> 64n;
  });
  return new Uint8Array(halves.buffer);
}

/** Return the numbers of 128 bits that are written like elements; some may not be below p. */
export function decode(bytes: Bytes): Elements {
  const halves = new BigUint64Array(bytes.slice().buffer);
  return Array.from({ length: halves.length / 2 }, (_, at) => {
    return halves[2 * at]! + (halves[2 * at + 1]! << 64n);
  });
}

/** Return a difference, entry by entry. */
export function subtracted(from: Elements, other: Elements): Elements {
  return from.map((each, at) => element(each - other[at]!));
}

/** Return powers of an element, from the 0th on. */
export function powers(base: bigint, count: number): Elements {
  const found = [1n];
  while (found.length < count) found.push((found.at(-1)! * base) % MODULUS);
  return found;
}

/** Return one power of an element. */
export function power(base: bigint, exponent: bigint): bigint {
  let found = 1n;
  for (const bit of exponent.toString(2)) {
    found = (found * found * (bit === "1" ? base : 1n)) % MODULUS;
  }
  return found;
}
