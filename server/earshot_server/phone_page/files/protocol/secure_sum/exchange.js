import { MalformedMessageError } from "../errors.js";
export async function exchanged(privateKey, publicKey) {
    try {
        const known = await crypto.subtle.importKey("raw", publicKey, "X25519", false, []);
        const bits = await crypto.subtle.deriveBits({ name: "X25519", public: known }, privateKey, 256);
        const shared = new Uint8Array(bits);
        if (shared.every((byte) => byte === 0))
            throw new RangeError("a key of low order");
        return shared;
    }
    catch (error) {
        throw new MalformedMessageError("the helper's key is not one that seals", { cause: error });
    }
}
