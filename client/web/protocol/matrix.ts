/** Matrices of float32 on the wire, and rows of numbers in memory. */

import { MalformedMessageError } from "./errors.ts";
import { bytes, map, type Of, whole } from "./fields.ts";

export const LARGEST_DIMENSIONS = 1024;

/** A matrix in a message: little-endian float32, row by row. */
export const matrix = map({
  rows: whole(0, 65_536),
  columns: whole(1, LARGEST_DIMENSIONS),
  data: bytes(0, 32 * 2 ** 20),
});

export type Matrix = Of<typeof matrix>;

/** Rows of numbers, one row after the other in `values`. */
export interface Rows {
  readonly rows: number;
  readonly columns: number;
  readonly values: Float32Array | Float64Array;
}

/**
 * Return the rows of a matrix, as float32.
 *
 * Throws `MalformedMessageError` if the data do not fill the shape, or an entry is not finite.
 */
export function rowsOf({ rows, columns, data }: Matrix): Rows {
  if (data.length !== 4 * rows * columns) {
    throw new MalformedMessageError(
      `${data.length} bytes do not hold a ${rows} × ${columns} matrix`,
    );
  }
  const view = new DataView(data.buffer, data.byteOffset, data.byteLength);
  const values = Float32Array.from({ length: rows * columns }, (_, at) =>
    view.getFloat32(4 * at, true),
  );
  if (!values.every(Number.isFinite)) {
    throw new MalformedMessageError("a matrix with entries that are not finite");
  }
  return { rows, columns, values };
}

/** Return one row, without a copy. */
export function row({ columns, values }: Rows, at: number): Float32Array | Float64Array {
  return values.subarray(at * columns, (at + 1) * columns);
}
