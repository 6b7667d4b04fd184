import { MalformedMessageError } from "./errors.js";
import { bytes, map, whole } from "./fields.js";
export const LARGEST_DIMENSIONS = 1024;
export const matrix = map({
    rows: whole(0, 65_536),
    columns: whole(1, LARGEST_DIMENSIONS),
    data: bytes(0, 32 * 2 ** 20),
});
export function rowsOf({ rows, columns, data }) {
    if (data.length !== 4 * rows * columns) {
        throw new MalformedMessageError(`${data.length} bytes do not hold a ${rows} × ${columns} matrix`);
    }
    const view = new DataView(data.buffer, data.byteOffset, data.byteLength);
    const values = Float32Array.from({ length: rows * columns }, (_, at) => view.getFloat32(4 * at, true));
    if (!values.every(Number.isFinite)) {
        throw new MalformedMessageError("a matrix with entries that are not finite");
    }
    return { rows, columns, values };
}
export function row({ columns, values }, at) {
    return values.subarray(at * columns, (at + 1) * columns);
}
