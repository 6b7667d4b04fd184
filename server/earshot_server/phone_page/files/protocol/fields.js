import { MalformedMessageError } from "./errors.js";
import { compared, pack, Real } from "./wire.js";
export function optional(field, value) {
    return { ...field, missing: { value } };
}
export function nullable(field) {
    return {
        read: (value) => (value === null ? null : field.read(value)),
        write: (value, plain) => (value === null ? null : field.write(value, plain)),
        missing: { value: null },
    };
}
export function whole(least = -(2 ** 53) + 1, most = 2 ** 53 - 1) {
    return {
        read(value) {
            if (typeof value !== "number" || value < least || value > most) {
                throw new MalformedMessageError(`a whole number from ${least} to ${most} is needed`);
            }
            return value;
        },
        write: (value) => value,
    };
}
export const large = {
    read(value) {
        if (typeof value !== "number" && typeof value !== "bigint") {
            throw new MalformedMessageError("a whole number is needed");
        }
        return BigInt(value);
    },
    write: (value) => value,
};
export function real(least = -Infinity, most = Infinity) {
    return {
        read(value) {
            const number = value instanceof Real
                ? value.value
                : typeof value === "number" || typeof value === "bigint"
                    ? Number(value)
                    : null;
            const isFree = least === -Infinity && most === Infinity;
            if (number === null || !(isFree || (number >= least && number <= most))) {
                throw new MalformedMessageError(`a number from ${least} to ${most} is needed`);
            }
            return number;
        },
        write: (value) => new Real(value),
    };
}
export function bytes(least, most = least) {
    return {
        read(value) {
            if (!(value instanceof Uint8Array) || value.length < least || value.length > most) {
                throw new MalformedMessageError(`bytes are needed, ${least} to ${most} of them`);
            }
            return value;
        },
        write: (value) => value,
    };
}
export const flag = {
    read(value) {
        if (typeof value !== "boolean")
            throw new MalformedMessageError("yes or no is needed");
        return value;
    },
    write: (value) => value,
};
const UNSEEN = /[\x00-\x1f\x7f-\x9f\xad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb\u{e0000}-\u{e007f}]/u;
export function line(most, least = 0) {
    return {
        read(value) {
            const length = typeof value === "string" ? [...value].length : -1;
            if (typeof value !== "string" || length < least || length > most || UNSEEN.test(value)) {
                throw new MalformedMessageError(`a line of ${least} to ${most} characters is needed`);
            }
            return value;
        },
        write: (value) => value,
    };
}
export function oneOf(...words) {
    return {
        read(value) {
            const found = words.find((word) => word === value);
            if (found === undefined) {
                throw new MalformedMessageError(`one of ${words.join(", ")} is needed`);
            }
            return found;
        },
        write: (value) => value,
    };
}
export const day = {
    read(value) {
        const parts = typeof value === "string" ? /^(\d{4})-(\d\d)-(\d\d)$/.exec(value) : null;
        const date = parts && new Date(`${parts[0]}T00:00:00Z`);
        if (!date || parts[1] === "0000" || !(date.getUTCDate() === Number(parts[3]))) {
            throw new MalformedMessageError("a day is needed, such as 2026-01-08");
        }
        return value;
    },
    write: (value) => value,
};
export function list(field, most) {
    return {
        read(value) {
            if (!Array.isArray(value) || value.length > most) {
                throw new MalformedMessageError(`a list of at most ${most} is needed`);
            }
            return value.map((entry) => field.read(entry));
        },
        write: (value, plain) => value.map((entry) => field.write(entry, plain)),
    };
}
export function map(fields) {
    const names = Object.keys(fields);
    return {
        read(value) {
            if (!(value instanceof Map))
                throw new MalformedMessageError("a map is needed");
            for (const name of value.keys()) {
                if (!Object.hasOwn(fields, name)) {
                    throw new MalformedMessageError(`a field '${name.slice(0, 64)}' that there is not`);
                }
            }
            return Object.fromEntries(names.map((name) => [name, entry(value, name)]));
        },
        write(value, plain) {
            const written = names.map((name) => [name, fields[name].write(value[name], plain)]);
            return new Map(plain ? written.filter(([name, entry]) => !isDefault(name, entry)) : written);
        },
    };
    function entry(value, name) {
        const field = fields[name];
        const given = value.get(name);
        if (given === undefined) {
            if (field.missing)
                return field.missing.value;
            throw new MalformedMessageError(`a field '${name}' is missing`);
        }
        try {
            return field.read(given);
        }
        catch (error) {
            if (!(error instanceof MalformedMessageError))
                throw error;
            throw new MalformedMessageError(`${name}: ${error.message}`);
        }
    }
    function isDefault(name, written) {
        const { missing, write } = fields[name];
        if (missing === undefined)
            return false;
        return written === null || missing.value === null
            ? written === missing.value
            : compared(pack(written, true), pack(write(missing.value, true), true)) === 0;
    }
}
export function tagged(name, kinds) {
    return {
        read(value) {
            const kind = value instanceof Map ? value.get(name) : undefined;
            if (typeof kind !== "string" || !Object.hasOwn(kinds, kind)) {
                throw new MalformedMessageError(`a map is needed whose ${name} is known`);
            }
            const rest = new Map(value);
            rest.delete(name);
            return { [name]: kind, ...kinds[kind].read(rest) };
        },
        write(value, plain) {
            const kind = value[name];
            const rest = kinds[kind].write(value, plain);
            return new Map([[name, kind], ...rest]);
        },
    };
}
export function encode(field, value) {
    return pack(field.write(value, false));
}
