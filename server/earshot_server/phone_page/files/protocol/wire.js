import { InvalidInputError, MalformedMessageError } from "./errors.js";
export class Real {
    value;
    constructor(value) {
        this.value = value;
    }
}
const DEEPEST = 32;
const encoder = new TextEncoder();
const decoder = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });
export function joined(...parts) {
    const whole = new Uint8Array(parts.reduce((size, part) => size + part.length, 0));
    let at = 0;
    for (const part of parts) {
        whole.set(part, at);
        at += part.length;
    }
    return whole;
}
export function utf8(text) {
    return encoder.encode(text);
}
export function compared(one, other) {
    const shared = Math.min(one.length, other.length);
    for (let at = 0; at < shared; at++) {
        const difference = one[at] - other[at];
        if (difference)
            return difference;
    }
    return one.length - other.length;
}
export function hex(bytes) {
    return Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
}
export function pack(value, sorted = false) {
    const parts = [];
    write(parts, value, sorted);
    return joined(...parts);
}
export function unpack(data, limit) {
    if (data.length > limit) {
        throw new MalformedMessageError(`a message of ${data.length} bytes; at most ${limit} are accepted`);
    }
    const reader = new Reader(data);
    const value = reader.read(0);
    if (reader.at < data.length) {
        throw new MalformedMessageError(`${data.length - reader.at} bytes follow a message`);
    }
    return value;
}
function write(parts, value, sorted) {
    if (value === null)
        parts.push(Uint8Array.of(0xc0));
    else if (typeof value === "boolean")
        parts.push(Uint8Array.of(value ? 0xc3 : 0xc2));
    else if (typeof value === "number" || typeof value === "bigint")
        parts.push(whole(value));
    else if (typeof value === "string") {
        if (!value.isWellFormed())
            throw new InvalidInputError("text that is not Unicode");
        const text = utf8(value);
        parts.push(header(text.length, [0xa0, 32], [0xd9, 0xda, 0xdb]), text);
    }
    else if (value instanceof Uint8Array) {
        parts.push(header(value.length, [0, 0], [0xc4, 0xc5, 0xc6]), value);
    }
    else if (value instanceof Real) {
        const bytes = new DataView(new ArrayBuffer(9));
        bytes.setUint8(0, 0xcb);
        bytes.setFloat64(1, value.value);
        parts.push(new Uint8Array(bytes.buffer));
    }
    else if (value instanceof Map) {
        parts.push(header(value.size, [0x80, 16], [null, 0xde, 0xdf]));
        const entries = [...value].map(([name, entry]) => [utf8(name), name, entry]);
        if (sorted)
            entries.sort(([one], [other]) => compared(one, other));
        for (const [, name, entry] of entries) {
            write(parts, name, sorted);
            write(parts, entry, sorted);
        }
    }
    else {
        const list = value;
        parts.push(header(list.length, [0x90, 16], [null, 0xdc, 0xdd]));
        for (const entry of list)
            write(parts, entry, sorted);
    }
}
function header(size, [short, below], [one, two, four]) {
    if (size < below)
        return Uint8Array.of(short + size);
    const wide = size < 2 ** 8 && one !== null ? 1 : size < 2 ** 16 ? 2 : 4;
    return numbered(wide === 1 ? one : wide === 2 ? two : four, BigInt(size), wide);
}
function whole(value) {
    if (typeof value === "number" && !Number.isSafeInteger(value)) {
        throw new InvalidInputError(`${value} is not a whole number; give a Real`);
    }
    const number = BigInt(value);
    if (number >= -32n && number < 128n)
        return Uint8Array.of(Number(number) & 0xff);
    for (const [place, bytes] of [1, 2, 4, 8].entries()) {
        const bits = BigInt(8 * bytes);
        if (number >= 0n && number < 1n << bits)
            return numbered(0xcc + place, number, bytes);
        if (number < 0n && number >= -(1n << (bits - 1n)))
            return numbered(0xd0 + place, number, bytes);
    }
    throw new InvalidInputError(`${value} does not fit 64 bits`);
}
function numbered(type, value, bytes) {
    const written = Uint8Array.of(type, ...new Uint8Array(bytes));
    for (let at = bytes; at > 0; at--) {
        written[at] = Number(value & 0xffn);
        value >>= 8n;
    }
    return written;
}
class Reader {
    at = 0;
    #data;
    #view;
    constructor(data) {
        this.#data = data;
        this.#view = new DataView(data.buffer, data.byteOffset, data.byteLength);
    }
    read(depth) {
        const type = this.#size(1);
        if (type < 0x80)
            return type;
        if (type < 0x90)
            return this.#map(type & 0x0f, depth);
        if (type < 0xa0)
            return this.#list(type & 0x0f, depth);
        if (type < 0xc0)
            return this.#text(type & 0x1f);
        if (type >= 0xe0)
            return type - 0x100;
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
    #map(size, depth) {
        this.#check(2 * size, depth);
        const map = new Map();
        for (let entry = 0; entry < size; entry++) {
            const name = this.read(DEEPEST);
            if (typeof name !== "string" || map.has(name)) {
                throw new MalformedMessageError("a map with a name twice, or one that is not text");
            }
            map.set(name, this.read(depth + 1));
        }
        return map;
    }
    #list(size, depth) {
        this.#check(size, depth);
        return Array.from({ length: size }, () => this.read(depth + 1));
    }
    #check(values, depth) {
        if (depth >= DEEPEST || values > this.#data.length - this.at) {
            throw new MalformedMessageError("a message that nests too deeply, or ends too early");
        }
    }
    #text(size) {
        try {
            return decoder.decode(this.#take(size));
        }
        catch (error) {
            if (error instanceof MalformedMessageError)
                throw error;
            throw new MalformedMessageError("text that is not UTF-8");
        }
    }
    #size(bytes) {
        return this.#take(bytes).reduce((size, byte) => 256 * size + byte, 0);
    }
    #number(bytes, read) {
        const at = this.at;
        this.#take(bytes);
        return read(at);
    }
    #take(size) {
        if (size > this.#data.length - this.at)
            throw new MalformedMessageError("the end is missing");
        this.at += size;
        return this.#data.subarray(this.at - size, this.at);
    }
}
function small(value) {
    const number = Number(value);
    return Number.isSafeInteger(number) ? number : value;
}
