/** The vectors of docs/vectors/, in Node and in a browser, and their bytes and messages. */

import type { Field } from "../../client/web/protocol/fields.ts";
import { type Bytes, Real, type Wire } from "../../client/web/protocol/wire.ts";

/** A file of docs/vectors/; whole numbers beyond 2^53 are bigints. */
// Vectors have a shape each, which the tests say and check.
export async function vectors(name: string): Promise<any> {
  const place = new URL(`../../docs/vectors/${name}.json`, import.meta.url);
  const text =
    place.protocol === "file:"
      ? await (await import("node:fs/promises")).readFile(place, "utf8")
      : await (await fetch(place)).text();
  const parse = JSON.parse as (
    text: string,
    reviver: (name: string, value: unknown, context: { source?: string }) => unknown,
  ) => unknown;
  return parse(text, (_, value, { source }) =>
    typeof value === "number" && !Number.isSafeInteger(value) && /^-?\d+$/.test(source!)
      ? BigInt(source!)
      : value,
  );
}

export function of(hexadecimal: string): Bytes {
  return Uint8Array.from(hexadecimal.match(/../g) ?? [], (byte) => parseInt(byte, 16));
}

const BYTES = new Set([
  ...["phase", "sum_id", "hierarchy", "data", "report_id", "sealed", "share", "public", "leader"],
  ...["helper", "key", "task", "public_key", "known"],
]);

/** A message in JSON as it is on the wire; bytes are told apart by the names of their fields. */
export function wire(json: any, name = ""): Wire {
  if (Array.isArray(json)) return json.map((entry) => wire(entry, name));
  if (json !== null && typeof json === "object") {
    return new Map(Object.entries(json).map(([key, value]) => [key, wire(value, key)]));
  }
  if (typeof json === "string" && (BYTES.has(name) || name === "rows")) {
    return Uint8Array.from(atob(json), (letter) => letter.charCodeAt(0));
  }
  return typeof json === "number" && !Number.isInteger(json) ? new Real(json) : json;
}

/** A message in JSON, read as the wire's would be. */
export function read<T>(field: Field<T>, json: any): T {
  return field.read(wire(json));
}
