/** The canonical form of messages, which is hashed (docs/protocol.md, section 3), and SHA-256. */

import type { Field } from "./fields.ts";
import { type Bytes, joined, pack } from "./wire.ts";

/**
 * Return the canonical form: names in order, everything as short as can be, real numbers as floats,
 * and no field that has its default.
 */
export function canonical<T>(field: Field<T>, value: T): Bytes {
  return pack(field.write(value, true), true);
}

/** Return the SHA-256 of concatenated parts. */
export async function sha256(...parts: readonly Uint8Array[]): Promise<Bytes> {
  return new Uint8Array(await crypto.subtle.digest("SHA-256", joined(...parts)));
}
