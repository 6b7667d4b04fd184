/**
 * Signatures of a phone's requests: one profile of RFC 9421 with Ed25519 (docs/protocol.md,
 * section 2).
 *
 * Some engines randomize signatures (Apple's do), so two signatures of one request may differ.
 */

import { sha256 } from "./canonical.ts";
import { InvalidInputError } from "./errors.ts";
import { type Bytes, joined, utf8 } from "./wire.ts";

const COVERED = '("@method" "@path" "content-type" "content-digest")';
/** A name under which a server knows a key, and what is said of any other. */
export const KEY_ID = /^[A-Za-z0-9_-]{1,64}$/;
export const NO_KEY_ID = "a name is 1 to 64 of A-Z a-z 0-9 _ -";
const LATEST = 1e12;
// PKCS #8 header of an Ed25519 private key of 32 bytes (RFC 8410, section 7).
const PKCS8 = Uint8Array.of(48, 46, 2, 1, 0, 48, 5, 6, 3, 43, 101, 112, 4, 34, 4, 32);

/** Fields of a request that sign it. */
export interface SignedFields {
  readonly "Content-Digest": string;
  readonly "Signature-Input": string;
  readonly Signature: string;
}

/** A phone's key pair, made from the 32 secret bytes in its store. */
export interface SigningKey {
  readonly privateKey: CryptoKey;
  /** The public key, 32 bytes. */
  readonly publicKey: Bytes;
}

/** Draw a seed without a leading zero byte, with which WebKitGTK 2.50 cannot import it. */
export function newSeed(): Bytes {
  const seed = crypto.getRandomValues(new Uint8Array(32));
  return seed[0] ? seed : newSeed();
}

/**
 * Make the key pair of a seed of 32 random bytes.
 *
 * Throws `InvalidInputError` for another number of bytes.
 */
export async function signingKey(seed: Uint8Array): Promise<SigningKey> {
  if (seed.length !== 32) throw new InvalidInputError(`a key of ${seed.length} bytes, not 32`);
  const pkcs8 = joined(PKCS8, seed);
  try {
    const shown = await crypto.subtle.importKey("pkcs8", pkcs8, "Ed25519", true, ["sign"]);
    const { x } = await crypto.subtle.exportKey("jwk", shown);
    const standard = x!.replaceAll("-", "+").replaceAll("_", "/");
    return {
      privateKey: await crypto.subtle.importKey("pkcs8", pkcs8, "Ed25519", false, ["sign"]),
      publicKey: Uint8Array.from(atob(standard), (letter) => letter.charCodeAt(0)),
    };
  } finally {
    pkcs8.fill(0);
  }
}

/** Return whether this is the signature of that key, 32 bytes, over the message. */
export async function verified(key: Bytes, signature: Bytes, message: Bytes): Promise<boolean> {
  try {
    const known = await crypto.subtle.importKey("raw", key, "Ed25519", false, ["verify"]);
    return await crypto.subtle.verify("Ed25519", known, signature, message);
  } catch (error) {
    // An invalid key; but an engine without Ed25519 must not look like a forgery.
    if (error instanceof DOMException && error.name === "NotSupportedError") throw error;
    return false;
  }
}

/**
 * Return the fields that sign a POST request.
 *
 * `keyId` is the name under which the server knows the key, `created` whole seconds since 1970,
 * `path` begins with a slash and has no query, `contentType` is the field exactly as it is sent.
 *
 * Throws `InvalidInputError` for a name or a time that the profile does not allow.
 */
export async function sign(
  key: CryptoKey,
  keyId: string,
  created: number,
  path: string,
  contentType: string,
  body: Bytes,
): Promise<SignedFields> {
  if (!KEY_ID.test(keyId)) throw new InvalidInputError(NO_KEY_ID);
  if (!Number.isInteger(created) || created < 0 || created >= LATEST) {
    throw new InvalidInputError(`created=${created}: must be whole seconds since 1970`);
  }
  const digest = `sha-256=:${base64(await sha256(body))}:`;
  const parameters = `${COVERED};created=${created};keyid="${keyId}";alg="ed25519"`;
  const base = signatureBase(path, contentType, digest, parameters);
  const signature = await crypto.subtle.sign("Ed25519", key, base);
  return {
    "Content-Digest": digest,
    "Signature-Input": `earshot=${parameters}`,
    Signature: `earshot=:${base64(new Uint8Array(signature))}:`,
  };
}

/** Return what is signed (RFC 9421, section 2.5). */
export function signatureBase(
  path: string,
  contentType: string,
  digest: string,
  parameters: string,
): Bytes {
  return utf8(
    [
      '"@method": POST',
      `"@path": ${path}`,
      `"content-type": ${contentType}`,
      `"content-digest": ${digest}`,
      `"@signature-params": ${parameters}`,
    ].join("\n"),
  );
}

function base64(bytes: Uint8Array): string {
  return btoa(String.fromCharCode(...bytes));
}
