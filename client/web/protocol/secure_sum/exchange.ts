/** The exchange of keys under which a seed is sealed (X25519, RFC 7748). */

import { MalformedMessageError } from "../errors.ts";
import type { Bytes } from "../wire.ts";

/**
 * Draw a key pair.
 *
 * WebKitGTK 2.50 fails where the private key begins with a zero byte, one in 256: then draw again.
 */
export async function keyPair(draws = 4): Promise<CryptoKeyPair> {
  try {
    return (await crypto.subtle.generateKey("X25519", false, ["deriveBits"])) as CryptoKeyPair;
  } catch (error) {
    if (draws === 1) throw error;
    return keyPair(draws - 1);
  }
}

/**
 * Return what a private key shares with a public one of 32 bytes.
 *
 * Throws `MalformedMessageError` for a public key of low order, whose shared secret is zeros.
 */
export async function exchanged(privateKey: CryptoKey, publicKey: Bytes): Promise<Bytes> {
  try {
    const known = await crypto.subtle.importKey("raw", publicKey, "X25519", false, []);
    const bits = await crypto.subtle.deriveBits({ name: "X25519", public: known }, privateKey, 256);
    const shared = new Uint8Array(bits);
    // Engines must refuse these; with one that does not, anyone could open the seal.
    if (shared.every((byte) => byte === 0)) throw new RangeError("a key of low order");
    return shared;
  } catch (error) {
    throw new MalformedMessageError("the helper's key is not a valid X25519 key", { cause: error });
  }
}
