/**
 * MessagePack as specified in docs/protocol.md, section 3, written and read strictly.
 *
 * JavaScript has one type of number, but MessagePack distinguishes 1 from 1.0, and hashes depend on
 * it. So a real number is a `Real` here, and only here: messages hold plain numbers, and their
 * fields say which of them are real (`fields`).
 */

import { InvalidInputError, MalformedMessageError } from "./errors.ts";

/** A `Uint8Array` of an `ArrayBuffer`, which has another name before TypeScript 5.7. */
type OwnBytes = ReturnType<typeof Uint8Array.of>;

/** Bytes in their own buffer; an interface, since declarations would expand another type. */
export interface Bytes extends OwnBytes {}

/** A real number on the wire: written as eight bytes, even if it is whole. */
export class Real {
  readonly value: number;

  constructor(value: number) {
    this.value = value;
  }
}

/** Anything that a message may hold; whole numbers beyond 2^53 are bigints. */
export type Wire =
  | null
  | boolean
  | number
  | bigint
  | Real
  | string
  | Bytes
  | readonly Wire[]
  | ReadonlyMap<string, Wire>;

/** Deepest nesting of maps and lists; messages have six levels. */
const DEEPEST = 32;

const encoder = new TextEncoder();
// Refuses invalid UTF-8, and keeps a byte order mark, which is a character here.
const decoder = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });

/** Join bytes into new ones. */
export function joined(...parts: readonly Uint8Array[]): Bytes {
  const whole = new Uint8Array(parts.reduce((size, part) => size + part.length, 0));
  let at = 0;
  for (const part of parts) {
    whole.set(part, at);
    at += part.length;
  }
  return whole;
}

/** Encode text as UTF-8. */
export function utf8(text: string): Bytes {
  return encoder.encode(text);
}

/** Compare bytes: negative, zero or positive as the first come before, equal or follow. */
export function compared(one: Uint8Array, other: Uint8Array): number {
  const shared = Math.min(one.length, other.length);
  for (let at = 0; at < shared; at++) {
    const difference = one[at]! - other[at]!;
    if (difference) return difference;
  }
  return one.length - other.length;
}

/** Write bytes as hexadecimal digits. */
export function hex(bytes: Uint8Array): string {
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
}

/**
 * Write a value, with every header and whole number in its shortest form.
 *
 * Maps keep their order; with `sorted`, names ascend by their bytes, which is the canonical form.
 *
 * Throws `InvalidInputError` for a number that is not whole and not a `Real`, or text that is not
 * Unicode.
 */
export function pack(value: Wire, sorted = false): Bytes {
  const parts: Uint8Array[] = [];
  write(parts, value, sorted);
  return joined(...parts);
}

/**
 * Read bytes that hold one value and nothing behind it.
 *
 * Throws `MalformedMessageError` for what is longer than `limit` bytes or does not decode, and for
 * a name that a map has twice, a name that is not text, an extension type, text that is not UTF-8,
 * and nesting deeper than any message has.
 */
export function unpack(data: Uint8Array, limit: number): Wire {
  if (data.length > limit) {
    throw new MalformedMessageError(
      `a message of ${data.length} bytes; at most ${limit} are accepted`,
    );
  }
  const reader = new Reader(data);
  const value = reader.read(0);
  if (reader.at < data.length) {
    throw new MalformedMessageError(`${data.length - reader.at} bytes follow a message`);
  }
  return value;
}

function write(parts: Uint8Array[], value: Wire, sorted: boolean): void {
  if (value === null) parts.push(Uint8Array.of(0xc0));
  else if (typeof value === "boolean") parts.push(Uint8Array.of(value ? 0xc3 : 0xc2));
  else if (typeof value === "number" || typeof value === "bigint") parts.push(whole(value));
  else if (typeof value === "string") {
    // A lone surrogate would be replaced silently by another character.
    if (!value.isWellFormed()) throw new InvalidInputError("text that is not Unicode");
    const text = utf8(value);
    parts.push(header(text.length, [0xa0, 32], [0xd9, 0xda, 0xdb]), text);
  } else if (value instanceof Uint8Array) {
    parts.push(header(value.length, [0, 0], [0xc4, 0xc5, 0xc6]), value);
  } else if (value instanceof Real) {
    const bytes = new DataView(new ArrayBuffer(9));
    bytes.setUint8(0, 0xcb);
    bytes.setFloat64(1, value.value);
    parts.push(new Uint8Array(bytes.buffer));
  } else if (value instanceof Map) {
    parts.push(header(value.size, [0x80, 16], [null, 0xde, 0xdf]));
    const entries = [...(value as ReadonlyMap<string, Wire>)].map(
      ([name, entry]) => [utf8(name), name, entry] as const,
    );
    if (sorted) entries.sort(([one], [other]) => compared(one, other));
    for (const [, name, entry] of entries) {
      write(parts, name, sorted);
      write(parts, entry, sorted);
    }
  } else {
    const list = value as readonly Wire[];
    parts.push(header(list.length, [0x90, 16], [null, 0xdc, 0xdd]));
    for (const entry of list) write(parts, entry, sorted);
  }
}

/** Write a header: in one byte below a size, else with a size of 1, 2 or 4 bytes. */
function header(
  size: number,
  [short, below]: readonly [number, number],
  [one, two, four]: readonly [number | null, number, number],
): Uint8Array {
  if (size < below) return Uint8Array.of(short + size);
  const wide = size < 2 ** 8 && one !== null ? 1 : size < 2 ** 16 ? 2 : 4;
  return numbered(wide === 1 ? one! : wide === 2 ? two : four, BigInt(size), wide);
}

function whole(value: number | bigint): Uint8Array {
  if (typeof value === "number" && !Number.isSafeInteger(value)) {
    throw new InvalidInputError(`${value} is not a whole number; give a Real`);
  }
  const number = BigInt(value);
  if (number >= -32n && number < 128n) return Uint8Array.of(Number(number) & 0xff);
  for (const [place, bytes] of [1, 2, 4, 8].entries()) {
    const bits = 8 * bytes;
    if (BigInt.asUintN(bits, number) === number) return numbered(0xcc + place, number, bytes);
    if (BigInt.asIntN(bits, number) === number) return numbered(0xd0 + place, number, bytes);
  }
  throw new InvalidInputError(`${value} does not fit 64 bits`);
}

function numbered(type: number, value: bigint, bytes: number): Uint8Array {
  const written = new DataView(new ArrayBuffer(9));
  written.setBigUint64(1, value);
  written.setUint8(8 - bytes, type);
  return new Uint8Array(written.buffer, 8 - bytes);
}

class Reader {
  at = 0;
  readonly #data: Uint8Array;
  readonly #view: DataView;

  constructor(data: Uint8Array) {
    this.#data = data;
    this.#view = new DataView(data.buffer, data.byteOffset, data.byteLength);
  }

  read(depth: number): Wire {
    const type = this.#size(1);
    if (type < 0x80) return type;
    if (type < 0x90) return this.#map(type & 0x0f, depth);
    if (type < 0xa0) return this.#list(type & 0x0f, depth);
    if (type < 0xc0) return this.#text(type & 0x1f);
    if (type >= 0xe0) return type - 0x100;
    switch (type) {
      case 0xc0:
        return null;
      case 0xc2:
      case 0xc3:
        return type === 0xc3;
      case 0xc4:
      case 0xc5:
      case 0xc6:
        return this.#take(this.#size(2 ** (type - 0xc4))).slice();
      case 0xca:
        return new Real(this.#number(4, (at) => this.#view.getFloat32(at)));
      case 0xcb:
        return new Real(this.#number(8, (at) => this.#view.getFloat64(at)));
      case 0xcc:
      case 0xcd:
      case 0xce:
        return this.#size(2 ** (type - 0xcc));
      case 0xcf:
        return small(this.#number(8, (at) => this.#view.getBigUint64(at)));
      case 0xd0:
        return this.#number(1, (at) => this.#view.getInt8(at));
      case 0xd1:
        return this.#number(2, (at) => this.#view.getInt16(at));
      case 0xd2:
        return this.#number(4, (at) => this.#view.getInt32(at));
      case 0xd3:
        return small(this.#number(8, (at) => this.#view.getBigInt64(at)));
      case 0xd9:
      case 0xda:
      case 0xdb:
        return this.#text(this.#size(2 ** (type - 0xd9)));
      case 0xdc:
      case 0xdd:
        return this.#list(this.#size(2 * (type - 0xdb)), depth);
      case 0xde:
      case 0xdf:
        return this.#map(this.#size(2 * (type - 0xdd)), depth);
      default:
        throw new MalformedMessageError(`type ${type} of MessagePack, which no message has`);
    }
  }

  #map(size: number, depth: number): ReadonlyMap<string, Wire> {
    this.#check(2 * size, depth);
    const map = new Map<string, Wire>();
    for (let entry = 0; entry < size; entry++) {
      const name = this.read(DEEPEST);
      if (typeof name !== "string" || map.has(name)) {
        throw new MalformedMessageError("a map with a name twice, or one that is not text");
      }
      map.set(name, this.read(depth + 1));
    }
    return map;
  }

  #list(size: number, depth: number): readonly Wire[] {
    this.#check(size, depth);
    return Array.from({ length: size }, () => this.read(depth + 1));
  }

  /** Refuse a size beyond the remaining data before anything of that size is allocated. */
  #check(values: number, depth: number): void {
    if (depth >= DEEPEST || values > this.#data.length - this.at) {
      throw new MalformedMessageError("a message that nests too deeply, or ends too early");
    }
  }

  #text(size: number): string {
    try {
      return decoder.decode(this.#take(size));
    } catch (error) {
      if (error instanceof MalformedMessageError) throw error;
      throw new MalformedMessageError("text that is not UTF-8");
    }
  }

  #size(bytes: number): number {
    return this.#take(bytes).reduce((size, byte) => 256 * size + byte, 0);
  }

  #number<T>(bytes: number, read: (at: number) => T): T {
    const at = this.at;
    this.#take(bytes);
    return read(at);
  }

  #take(size: number): Uint8Array {
    if (size > this.#data.length - this.at) throw new MalformedMessageError("the end is missing");
    this.at += size;
    return this.#data.subarray(this.at - size, this.at);
  }
}

function small(value: bigint): number | bigint {
  const number = Number(value);
  return Number.isSafeInteger(number) ? number : value;
}
