import { UnexpectedMessageError } from "../errors.js";
import { bytes, map, optional, whole } from "../fields.js";
import { sha256 } from "../canonical.js";
import { joined, utf8 } from "../wire.js";
import { encodeInput, packWords, subtract, wordsOf } from "./encoding.js";
import { exchanged } from "./exchange.js";
import { offerDigest } from "./offer.js";
import { lengthOf, widthOf } from "./parameters.js";
const SEED_BYTES = 32;
const ID_BYTES = 16;
const SEALED_BYTES = SEED_BYTES + 48;
const LARGEST_SHARE = 16 * 2 ** 20;
const SHARE = utf8("earshot two operators: helper's share");
const NONE = new Uint8Array();
const KEM = joined(utf8("KEM"), Uint8Array.of(0, 0x20));
const HPKE = joined(utf8("HPKE"), Uint8Array.of(0, 0x20, 0, 1, 0, 1));
export const phoneReport = map({
    sum_id: bytes(16),
    sender: whole(0, 2 ** 32 - 1),
    report_id: bytes(ID_BYTES),
    sealed: bytes(SEALED_BYTES),
    share: bytes(0, LARGEST_SHARE),
    public: optional(bytes(0), NONE),
});
export async function draw() {
    return {
        seed: crypto.getRandomValues(new Uint8Array(SEED_BYTES)),
        reportId: crypto.getRandomValues(new Uint8Array(ID_BYTES)),
        ephemeral: (await crypto.subtle.generateKey("X25519", false, ["deriveBits"])),
    };
}
export async function makeReport(task, values, drawn) {
    if (task.offer === null || task.offer.offer.parameters.ones !== null) {
        throw new UnexpectedMessageError("a sum by two operators without an offer, or with proofs");
    }
    const { offer } = task.offer;
    const words = encodeInput(values, offer.parameters);
    const { seed, reportId, ephemeral } = drawn ?? (await draw());
    try {
        subtract(words, await helperShare(seed, offer.parameters));
        return {
            sum_id: task.sum_id,
            sender: task.index,
            report_id: reportId,
            sealed: await seal(seed, offer, reportId, ephemeral),
            share: packWords(words, widthOf(offer.parameters)),
            public: NONE,
        };
    }
    finally {
        seed.fill(0);
    }
}
export async function helperShare(seed, parameters) {
    const keys = await hkdf(seed, NONE, SHARE, 48);
    const key = await crypto.subtle.importKey("raw", keys.slice(0, 32), "AES-CTR", false, [
        "encrypt",
    ]);
    const words = wordsOf(parameters, lengthOf(parameters));
    const counter = { name: "AES-CTR", counter: keys.slice(32), length: 128 };
    const stream = await crypto.subtle.encrypt(counter, key, words);
    keys.fill(0);
    return words instanceof BigUint64Array
        ? new BigUint64Array(stream)
        : words instanceof Uint32Array
            ? new Uint32Array(stream)
            : new Uint16Array(stream);
}
async function seal(seed, offer, reportId, ephemeral) {
    const info = joined(await offerDigest(offer), reportId, await sha256(NONE));
    const enc = new Uint8Array(await crypto.subtle.exportKey("raw", ephemeral.publicKey));
    const shared = await hkdf(labelled(KEM, "eae_prk", await exchanged(ephemeral.privateKey, offer.key)), NONE, joined(Uint8Array.of(0, 32), labelled(KEM, "shared_secret", joined(enc, offer.key))), 32);
    const context = joined(Uint8Array.of(0), await hmac(labelled(HPKE, "psk_id_hash", NONE)), await hmac(labelled(HPKE, "info_hash", info)));
    const expand = (name, length) => hkdf(labelled(HPKE, "secret", NONE), shared, joined(Uint8Array.of(0, length), labelled(HPKE, name, context)), length);
    const key = await crypto.subtle.importKey("raw", await expand("key", 16), "AES-GCM", false, [
        "encrypt",
    ]);
    const nonce = { name: "AES-GCM", iv: await expand("base_nonce", 12) };
    return joined(enc, new Uint8Array(await crypto.subtle.encrypt(nonce, key, seed)));
}
function labelled(suite, label, value) {
    return joined(utf8("HPKE-v1"), suite, utf8(label), value);
}
async function hkdf(ikm, salt, info, length) {
    const key = await crypto.subtle.importKey("raw", ikm, "HKDF", false, ["deriveBits"]);
    const terms = { name: "HKDF", hash: "SHA-256", salt, info };
    return new Uint8Array(await crypto.subtle.deriveBits(terms, key, 8 * length));
}
async function hmac(value) {
    const name = { name: "HMAC", hash: "SHA-256" };
    const key = await crypto.subtle.importKey("raw", new Uint8Array(32), name, false, ["sign"]);
    return new Uint8Array(await crypto.subtle.sign("HMAC", key, value));
}
