import { sha256 } from "./canonical.js";
import { InvalidInputError, WrongStateError } from "./errors.js";
import { joined, utf8 } from "./wire.js";
const COVERED = '("@method" "@path" "content-type" "content-digest")';
const KEY_ID = /^[A-Za-z0-9_-]{1,64}$/;
const LATEST = 1e12;
const PKCS8 = Uint8Array.of(48, 46, 2, 1, 0, 48, 5, 6, 3, 43, 101, 112, 4, 34, 4, 32);
export async function signingKey(seed) {
    if (seed.length !== 32)
        throw new InvalidInputError(`a key of ${seed.length} bytes, not 32`);
    const pkcs8 = joined(PKCS8, seed);
    try {
        const shown = await crypto.subtle.importKey("pkcs8", pkcs8, "Ed25519", true, ["sign"]);
        const { x } = await crypto.subtle.exportKey("jwk", shown);
        const standard = x.replaceAll("-", "+").replaceAll("_", "/");
        return {
            privateKey: await crypto.subtle.importKey("pkcs8", pkcs8, "Ed25519", false, ["sign"]),
            publicKey: Uint8Array.from(atob(standard), (letter) => letter.charCodeAt(0)),
        };
    }
    catch (error) {
        throw new WrongStateError("this browser has no Ed25519, by which a phone signs", {
            cause: error,
        });
    }
    finally {
        pkcs8.fill(0);
    }
}
export async function verified(key, signature, message) {
    try {
        const known = await crypto.subtle.importKey("raw", key, "Ed25519", false, ["verify"]);
        return await crypto.subtle.verify("Ed25519", known, signature, message);
    }
    catch (error) {
        if (error instanceof DOMException && error.name === "NotSupportedError")
            throw error;
        return false;
    }
}
export async function sign(key, keyId, created, path, contentType, body) {
    if (!KEY_ID.test(keyId))
        throw new InvalidInputError("a name of 1 to 64 of A-Z a-z 0-9 _ -");
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
export function signatureBase(path, contentType, digest, parameters) {
    return utf8([
        '"@method": POST',
        `"@path": ${path}`,
        `"content-type": ${contentType}`,
        `"content-digest": ${digest}`,
        `"@signature-params": ${parameters}`,
    ].join("\n"));
}
function base64(bytes) {
    return btoa(String.fromCharCode(...bytes));
}
