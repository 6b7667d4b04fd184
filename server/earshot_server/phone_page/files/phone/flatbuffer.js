import { DamagedEncoderError } from "./encoder_file.js";
export class Table {
    static EMPTY = new Table(new DataView(Uint8Array.of(4, 0, 0, 0, 4, 0, 0, 0).buffer), 4);
    #bytes;
    #at;
    #fields;
    constructor(bytes, at) {
        this.#bytes = bytes;
        this.#at = at;
        inside(bytes, at, 4);
        this.#fields = at - bytes.getInt32(at, true);
        inside(bytes, this.#fields, 4);
    }
    byte(field, absent = 0) {
        const at = this.#place(field, 1);
        return at === undefined ? absent : this.#bytes.getInt8(at);
    }
    number(field, absent = 0) {
        const at = this.#place(field, 4);
        return at === undefined ? absent : this.#bytes.getInt32(at, true);
    }
    table(field) {
        const at = this.#place(field, 4);
        return at === undefined ? undefined : new Table(this.#bytes, this.#follow(at));
    }
    tables(field, most) {
        const view = this.#vector(field, 4, most);
        return Array.from({ length: view.byteLength / 4 }, (_, i) => {
            return new Table(this.#bytes, this.#follow(view.byteOffset - this.#bytes.byteOffset + 4 * i));
        });
    }
    numbers(field, most) {
        const view = this.#vector(field, 4, most);
        return Array.from({ length: view.byteLength / 4 }, (_, i) => view.getInt32(4 * i, true));
    }
    items(field, size) {
        return this.#vector(field, size, Infinity);
    }
    #vector(field, size, most) {
        const place = this.#place(field, 4);
        if (place === undefined)
            return new DataView(new ArrayBuffer(0));
        const at = this.#follow(place);
        inside(this.#bytes, at, 4);
        const count = this.#bytes.getUint32(at, true);
        if (count > most) {
            throw new DamagedEncoderError(`the model has a list of ${count} entries; ${most} may be`);
        }
        inside(this.#bytes, at + 4, count * size);
        return new DataView(this.#bytes.buffer, this.#bytes.byteOffset + at + 4, count * size);
    }
    #follow(at) {
        return at + this.#bytes.getUint32(at, true);
    }
    #place(field, size) {
        const entry = 4 + 2 * field;
        if (entry + 2 > this.#bytes.getUint16(this.#fields, true))
            return undefined;
        inside(this.#bytes, this.#fields + entry, 2);
        const offset = this.#bytes.getUint16(this.#fields + entry, true);
        if (offset === 0)
            return undefined;
        inside(this.#bytes, this.#at + offset, size);
        return this.#at + offset;
    }
}
export function rootOf(buffer, identifier) {
    const bytes = new DataView(buffer.buffer, buffer.byteOffset, buffer.byteLength);
    inside(bytes, 0, 8);
    if (String.fromCharCode(...buffer.subarray(4, 8)) !== identifier) {
        throw new DamagedEncoderError(`the model must begin with the identifier ${identifier}`);
    }
    return new Table(bytes, bytes.getUint32(0, true));
}
function inside(bytes, at, size) {
    if (at < 0 || at + size > bytes.byteLength) {
        throw new DamagedEncoderError(`the model is cut short or damaged: it has ${bytes.byteLength} bytes, and points to ${at}`);
    }
}
