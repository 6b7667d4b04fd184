/** The one form of a message that is hashed (docs/protocol.md, section 3), and hashes. */

import type { Field } from "./fields.ts";
import { type Bytes, joined, pack } from "./wire.ts";

/**
 * Return the canonical form: names in order, everything as short as can be, real numbers as floats,
 * and no field that has its default.
 */
export function canonical<T>(field: Field<T>, value: T): Bytes {
  return pack(field.write(value, true), true);
}

/** Return the SHA-256 of parts, one after the other. */
export async function sha256(...parts: readonly Uint8Array[]): Promise<Bytes> {
  return new Uint8Array(await crypto.subtle.digest("SHA-256", joined(...parts)));
}
