/**
 * Flatbuffers, read with every offset checked (https://flatbuffers.dev/internals).
 *
 * A table's fields are known by their numbers in the format's schema; a field that is absent has
 * its default.
 */

import { DamagedEncoderError } from "./encoder_file.ts";

/** A table within a flatbuffer. */
export class Table {
  /** A table without any field. */
  static readonly EMPTY = new Table(new DataView(Uint8Array.of(4, 0, 0, 0, 4, 0, 0, 0).buffer), 4);

  readonly #bytes: DataView;
  readonly #at: number;
  readonly #fields: number;

  /**
   * Open a table.
   *
   * `at`: where it begins.
   * Throws `DamagedEncoderError`: it exceeds the buffer; so do all methods.
   */
  constructor(bytes: DataView, at: number) {
    this.#bytes = bytes;
    this.#at = at;
    inside(bytes, at, 4);
    this.#fields = at - bytes.getInt32(at, true);
    inside(bytes, this.#fields, 4);
  }

  /** Return a field of one signed byte; a boolean is 0 or 1. */
  byte(field: number, absent = 0): number {
    const at = this.#place(field, 1);
    return at === undefined ? absent : this.#bytes.getInt8(at);
  }

  /** Return a field of a signed number of 32 bits. */
  number(field: number, absent = 0): number {
    const at = this.#place(field, 4);
    return at === undefined ? absent : this.#bytes.getInt32(at, true);
  }

  /** Return the table in a field, or undefined. */
  table(field: number): Table | undefined {
    const at = this.#place(field, 4);
    return at === undefined ? undefined : new Table(this.#bytes, this.#follow(at));
  }

  /** Return the tables in a field, at most `most`; none if it is absent. */
  tables(field: number, most: number): Table[] {
    const view = this.#vector(field, 4, most);
    return Array.from({ length: view.byteLength / 4 }, (_, i) => {
      return new Table(this.#bytes, this.#follow(view.byteOffset - this.#bytes.byteOffset + 4 * i));
    });
  }

  /** Return the signed numbers of 32 bits in a field, at most `most`; none if it is absent. */
  numbers(field: number, most: number): number[] {
    const view = this.#vector(field, 4, most);
    return Array.from({ length: view.byteLength / 4 }, (_, i) => view.getInt32(4 * i, true));
  }

  /** Return a vector's items, of `size` bytes each, as they lie in the buffer; none if absent. */
  items(field: number, size: number): DataView {
    return this.#vector(field, size, Infinity);
  }

  #vector(field: number, size: number, most: number): DataView {
    const place = this.#place(field, 4);
    if (place === undefined) return new DataView(new ArrayBuffer(0));
    const at = this.#follow(place);
    inside(this.#bytes, at, 4);
    const count = this.#bytes.getUint32(at, true);
    if (count > most) {
      throw new DamagedEncoderError(`the model has a list of ${count} entries; at most ${most} fit`);
    }
    inside(this.#bytes, at + 4, count * size);
    return new DataView(this.#bytes.buffer, this.#bytes.byteOffset + at + 4, count * size);
  }

  #follow(at: number): number {
    return at + this.#bytes.getUint32(at, true);
  }

  #place(field: number, size: number): number | undefined {
    const entry = 4 + 2 * field;
    if (entry + 2 > this.#bytes.getUint16(this.#fields, true)) return undefined;
    inside(this.#bytes, this.#fields + entry, 2);
    const offset = this.#bytes.getUint16(this.#fields + entry, true);
    if (offset === 0) return undefined;
    inside(this.#bytes, this.#at + offset, size);
    return this.#at + offset;
  }
}

/**
 * Return the root table of a flatbuffer.
 *
 * `identifier`: four letters that identify the format.
 * Throws `DamagedEncoderError`: the buffer has another identifier, or is cut short.
 */
export function rootOf(buffer: Uint8Array, identifier: string): Table {
  const bytes = new DataView(buffer.buffer, buffer.byteOffset, buffer.byteLength);
  inside(bytes, 0, 8);
  if (String.fromCharCode(...buffer.subarray(4, 8)) !== identifier) {
    throw new DamagedEncoderError(`the model must begin with the identifier ${identifier}`);
  }
  return new Table(bytes, bytes.getUint32(0, true));
}

function inside(bytes: DataView, at: number, size: number): void {
  if (at < 0 || at + size > bytes.byteLength) {
    throw new DamagedEncoderError(
      `the model is cut short or damaged: it has ${bytes.byteLength} bytes, and points to ${at}`,
    );
  }
}
