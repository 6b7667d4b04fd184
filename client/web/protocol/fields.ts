/**
 * Fields of messages: what each may hold, and which of them are real numbers.
 *
 * A `Field` reads a value from the wire, strictly, and writes it. Those of maps are made of others,
 * and their TypeScript types follow from them, so that each message is described once.
 */

import { MalformedMessageError } from "./errors.ts";
import { type Bytes, compared, pack, Real, type Wire } from "./wire.ts";

/** How a value is read and written; `plain` leaves out what has its default, for hashes. */
export interface Field<T> {
  read(value: Wire): T;
  write(value: T, plain: boolean): Wire;
  /** Default of a field that may be missing. */
  readonly missing?: { readonly value: T };
}

/** The type of the values of a field, or of a map of fields. */
export type Of<F> = F extends Field<infer T> ? T : never;

// A field both reads and writes its values, so only `any` covers all types.
type Fields = Readonly<Record<string, Field<any>>>;

type Values<F extends Fields> = { readonly [N in keyof F]: Of<F[N]> };

/** Give a field a default: it may be missing, and hashes leave it out where it has it. */
export function optional<T>(field: Field<T>, value: Of<Field<T>>): Field<T> {
  return { ...field, missing: { value: value as T } };
}

/** Let a field be nil, which is its default. */
export function nullable<T>(field: Field<T>): Field<T | null> {
  return {
    read: (value) => (value === null ? null : field.read(value)),
    write: (value, plain) => (value === null ? null : field.write(value, plain)),
    missing: { value: null },
  };
}

/**
 * Describe whole numbers from `least` to `most`, both included.
 *
 * Without limits they have those of the wire: one beyond 2^53 stays a bigint, is written unchanged,
 * and is refused by `checkWhole` before any arithmetic.
 */
export function whole(least = -Infinity, most = Infinity): Field<number> {
  return {
    read(value) {
      if (!isWhole(value) || value < least || value > most) {
        throw new MalformedMessageError(`a whole number from ${least} to ${most} is needed`);
      }
      return value as number;
    },
    write: (value) => value,
  };
}

function isWhole(value: Wire): value is number | bigint {
  return typeof value === "number" || typeof value === "bigint";
}

/** Describe whole numbers of results, which fit JavaScript's numbers. */
export const count: Field<number> = whole(-(2 ** 53) + 1, 2 ** 53 - 1);

/** Describe whole numbers of up to 64 bits; their limits are checked where they are used. */
export const large: Field<bigint> = {
  read: (value) => BigInt(whole().read(value)),
  write: (value) => value,
};

/** Describe real numbers from `least` to `most`, both included; whole ones are accepted. */
export function real(least = -Infinity, most = Infinity): Field<number> {
  return {
    read(value) {
      const number =
        value instanceof Real ? value.value : isWhole(value) ? Number(value) : null;
      // NaN is within no limits. Without limits it is refused where it is used, as in Python.
      const isFree = least === -Infinity && most === Infinity;
      if (number === null || !(isFree || (number >= least && number <= most))) {
        throw new MalformedMessageError(`a number from ${least} to ${most} is needed`);
      }
      return number;
    },
    write: (value) => new Real(value),
  };
}

/** Describe bytes, `least` to `most` of them; with one number, exactly as many. */
export function bytes(least: number, most: number = least): Field<Bytes> {
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

/** Describe booleans. */
export const flag: Field<boolean> = {
  read(value) {
    if (typeof value !== "boolean") throw new MalformedMessageError("a boolean is needed");
    return value;
  },
  write: (value) => value,
};

// Characters that end a line, move a cursor, hide letters or reverse their order.
const UNSEEN =
  /[\x00-\x1f\x7f-\x9f\xad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb\u{e0000}-\u{e007f}]/u;

/** Describe one line of `least` to `most` characters that are safe to show anywhere. */
export function line(most: number, least = 0): Field<string> {
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

/** Describe one of some words. */
export function oneOf<const T extends string>(...words: readonly T[]): Field<T> {
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

/** Describe a day, as text: `2026-01-08`. */
export const day: Field<string> = {
  read(value) {
    const parts = typeof value === "string" ? /^(\d{4})-(\d\d)-(\d\d)$/.exec(value) : null;
    const date = parts && new Date(`${parts[0]}T00:00:00Z`);
    // Some engines take the 30th of February for the first or second of March.
    if (!date || parts[1] === "0000" || !(date.getUTCDate() === Number(parts[3]))) {
      throw new MalformedMessageError("a day is needed, such as 2026-01-08");
    }
    return value as string;
  },
  write: (value) => value,
};

/** Describe a list of at most `most` values. */
export function list<T>(field: Field<T>, most: number): Field<readonly T[]> {
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

/** Describe a map with these fields and no others. */
export function map<const F extends Fields>(fields: F): Field<Values<F>> {
  const names = Object.keys(fields);
  return {
    read(value) {
      if (!(value instanceof Map)) throw new MalformedMessageError("a map is needed");
      for (const name of value.keys()) {
        if (!Object.hasOwn(fields, name)) {
          throw new MalformedMessageError(`unknown field '${name.slice(0, 64)}'`);
        }
      }
      return Object.fromEntries(names.map((name) => [name, entry(value, name)])) as Values<F>;
    },
    write(value, plain) {
      const written = names.map((name) => [name, fields[name]!.write(value[name], plain)] as const);
      return new Map(plain ? written.filter(([name, entry]) => !isDefault(name, entry)) : written);
    },
  };

  function entry(value: ReadonlyMap<string, Wire>, name: string): unknown {
    const field = fields[name]!;
    const given = value.get(name);
    if (given === undefined) {
      if (field.missing) return field.missing.value;
      throw new MalformedMessageError(`a field '${name}' is missing`);
    }
    try {
      return field.read(given);
    } catch (error) {
      if (!(error instanceof MalformedMessageError)) throw error;
      throw new MalformedMessageError(`${name}: ${error.message}`);
    }
  }

  function isDefault(name: string, written: Wire): boolean {
    const { missing, write } = fields[name]!;
    if (missing === undefined) return false;
    return written === null || missing.value === null
      ? written === missing.value
      : compared(pack(written, true), pack(write(missing.value, true), true)) === 0;
  }
}

/** The values of a map of one of several kinds, each with its name in the field `N`. */
export type Tagged<N extends string, K extends Fields> = {
  [T in keyof K & string]: Readonly<Record<N, T>> & Of<K[T]>;
}[keyof K & string];

/** Describe maps of several kinds, distinguished by the text in the field `name`. */
export function tagged<N extends string, const K extends Fields>(
  name: N,
  kinds: K,
): Field<Tagged<N, K>> {
  return {
    read(value) {
      const kind = value instanceof Map ? value.get(name) : undefined;
      if (typeof kind !== "string" || !Object.hasOwn(kinds, kind)) {
        throw new MalformedMessageError(`a map is needed whose ${name} is known`);
      }
      const rest = new Map(value as ReadonlyMap<string, Wire>);
      rest.delete(name);
      return { [name]: kind, ...(kinds[kind]!.read(rest) as object) } as Tagged<N, K>;
    },
    write(value, plain) {
      const kind = (value as Record<string, string>)[name]!;
      const rest = kinds[kind]!.write(value, plain) as ReadonlyMap<string, Wire>;
      return new Map<string, Wire>([[name, kind], ...rest]);
    },
  };
}

/** Write a message to be sent, with all of its fields. */
export function encode<T>(field: Field<T>, value: T): Bytes {
  return pack(field.write(value, false));
}
