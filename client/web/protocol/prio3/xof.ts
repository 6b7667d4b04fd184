/**
 * XofTurboShake128: bytes and field elements from a seed (draft-irtf-cfrg-vdaf-20, section 6.2.1),
 * by TurboSHAKE128 (RFC 9861), which browsers do not have.
 */

import type { Bytes } from "../wire.ts";
import { decode, type Elements, MODULUS } from "./field.ts";

/** Bytes of the state that a permutation absorbs or squeezes. */
const RATE = 168;
/** Domain separation byte of TurboSHAKE in this XOF, which the padding begins with. */
const DOMAIN = 1;
/** Lower words of the constants of the last 12 rounds of Keccak-f[1600]. */
const CONSTANTS = [
  ...[0x8000808b, 0x0000008b, 0x00008089, 0x00008003, 0x00008002, 0x00000080],
  ...[0x0000800a, 0x8000000a, 0x80008081, 0x00008080, 0x80000001, 0x80008008],
];
/** Their upper words, of which only the highest bit may be set, one bit a round. */
const HIGHEST = 0b101110111110;
/** Places to which lanes move, one after the other, from lane 1 on (π). */
const PLACES = Array.from({ length: 24 }, () => 0);
/** Bits by which they are rotated (ρ). */
const ROTATIONS = PLACES.map((_, at) => (((at + 1) * (at + 2)) / 2) % 64);
for (let at = 0, x = 1, y = 0; at < 24; at++) {
  [x, y] = [y, (2 * x + 3 * y) % 5];
  PLACES[at] = x + 5 * y;
}

/** Return bytes that are bound to a tag, a seed and a binder; more bytes begin with the fewer. */
export function derived(size: number, tag: Bytes, seed: Bytes, ...binder: Bytes[]): Bytes {
  // In native byte order, which is little-endian in every browser.
  const words = new Int32Array(50);
  const state = new Uint8Array(words.buffer);
  let at = 0;
  const tagLength = Uint8Array.of(tag.length & 0xff, tag.length >> 8);
  for (const part of [tagLength, tag, Uint8Array.of(seed.length), seed, ...binder]) {
    for (const byte of part) {
      state[at++]! ^= byte;
      if (at === RATE) {
        permute(words);
        at = 0;
      }
    }
  }
  state[at]! ^= DOMAIN;
  state[RATE - 1]! ^= 0x80;
  const found = new Uint8Array(size);
  for (let start = 0; start < size; start += RATE) {
    permute(words);
    found.set(state.subarray(0, Math.min(RATE, size - start)), start);
  }
  return found;
}

/** Return uniform elements that are bound to a tag, a seed and a binder. */
export function expanded(length: number, tag: Bytes, seed: Bytes, ...binder: Bytes[]): Elements {
  return firstBelow(length, (size) => derived(size, tag, seed, ...binder));
}

/** Return the first elements of a stream; numbers not below p, one in 2^59, are skipped. */
export function firstBelow(length: number, stream: (size: number) => Bytes): Elements {
  for (let drawn = length; ; drawn++) {
    const found = decode(stream(16 * drawn)).filter((number) => number < MODULUS);
    if (found.length === length) return found;
  }
}

/** Permute 25 lanes of 64 bits, lower word first, by 12 rounds of Keccak-p[1600], in place. */
function permute(lanes: Int32Array): void {
  const [columns, row] = [new Int32Array(10), new Int32Array(10)];
  for (let round = 0; round < 12; round++) {
    for (let at = 0; at < 10; at++) {
      columns[at] =
        lanes[at]! ^ lanes[at + 10]! ^ lanes[at + 20]! ^ lanes[at + 30]! ^ lanes[at + 40]!;
    }
    for (let at = 0; at < 50; at++) {
      // The column before, and the one behind rotated by one bit: from its own and its other word.
      const [before, behind] = [(at + 8) % 10, (at + 2) % 10];
      lanes[at]! ^=
        columns[before]! ^ (columns[behind]! << 1) ^ (columns[behind ^ 1]! >>> 31);
    }
    let [low, high] = [lanes[2]!, lanes[3]!];
    for (let at = 0; at < 24; at++) {
      const [place, bits] = [2 * PLACES[at]!, ROTATIONS[at]!];
      const [one, other] = bits < 32 ? [low, high] : [high, low];
      [low, high] = [lanes[place]!, lanes[place + 1]!];
      // No rotation is by 0 or 32 bits.
      lanes[place] = (one << bits) | (other >>> -bits);
      lanes[place + 1] = (other << bits) | (one >>> -bits);
    }
    for (let start = 0; start < 50; start += 10) {
      row.set(lanes.subarray(start, start + 10));
      for (let at = 0; at < 10; at++) {
        lanes[start + at]! ^= ~row[(at + 2) % 10]! & row[(at + 4) % 10]!;
      }
    }
    lanes[0]! ^= CONSTANTS[round]!;
    lanes[1]! ^= (HIGHEST >> round) << 31;
  }
}
