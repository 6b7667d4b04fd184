/**
 * A phone's report in a sum by two operators: its input in two shares. Nothing has to be kept.
 *
 * The helper's share follows from a seed that is sealed to it, the leader's is the rest.
 */

import { UnexpectedMessageError } from "../errors.ts";
import { bytes, map, type Of, optional, whole } from "../fields.ts";
import { sha256 } from "../canonical.ts";
import { type Bytes, joined, utf8 } from "../wire.ts";
import { encodeInput, packWords, subtract, type Words, wordsOf } from "./encoding.ts";
import { exchanged, keyPair } from "./exchange.ts";
import { type Offer, offerDigest, type SendReport } from "./offer.ts";
import { lengthOf, type SumParameters, widthOf } from "./parameters.ts";

const SEED_BYTES = 32;
const ID_BYTES = 16;
const SEALED_BYTES = SEED_BYTES + 48;
const LARGEST_SHARE = 16 * 2 ** 20;
const SHARE = utf8("earshot two operators: helper's share");
const NONE: Bytes = new Uint8Array();
// DHKEM(X25519, HKDF-SHA256) with HKDF-SHA256 and AES-128-GCM (RFC 9180).
const KEM = joined(utf8("KEM"), Uint8Array.of(0, 0x20));
const HPKE = joined(utf8("HPKE"), Uint8Array.of(0, 0x20, 0, 1, 0, 1));

/** A phone's input in two shares, as it is sent. */
export const phoneReport = map({
  sum_id: bytes(16),
  sender: whole(0, 2 ** 32 - 1),
  report_id: bytes(ID_BYTES),
  sealed: bytes(SEALED_BYTES),
  share: bytes(0, LARGEST_SHARE),
  public: optional(bytes(0), NONE),
});

export type PhoneReport = Of<typeof phoneReport>;

/** Randomness of one report. */
export interface Drawn {
  readonly seed: Bytes;
  readonly reportId: Bytes;
  readonly ephemeral: CryptoKeyPair;
}

/** Draw the randomness of one report from the system's generator. */
export async function draw(): Promise<Drawn> {
  return {
    seed: crypto.getRandomValues(new Uint8Array(SEED_BYTES)),
    reportId: crypto.getRandomValues(new Uint8Array(ID_BYTES)),
    ephemeral: await keyPair(),
  };
}

/**
 * Return the report of an input under an offer that `refusalsOfOffer` does not refuse.
 *
 * `values` are whole numbers within the bound, row by row. `drawn` is for tests only: a seed that
 * is used twice reveals the difference of two inputs. The seed is erased.
 *
 * Throws `UnexpectedMessageError` if the task has no offer or demands proofs, `InvalidInputError`
 * for an invalid input, and `MalformedMessageError` for an invalid key of the helper.
 */
export async function makeReport(
  task: SendReport,
  values: ArrayLike<number>,
  drawn?: Drawn,
): Promise<PhoneReport> {
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
  } finally {
    seed.fill(0);
  }
}

/** Return the helper's share of an input: the AES-256-CTR key stream of a seed. */
export async function helperShare(seed: Bytes, parameters: SumParameters): Promise<Words> {
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

/** Seal a seed to the helper by HPKE in base mode, for this report under this offer alone. */
async function seal(
  seed: Bytes,
  offer: Offer,
  reportId: Bytes,
  ephemeral: CryptoKeyPair,
): Promise<Bytes> {
  const info = joined(await offerDigest(offer), reportId, await sha256(NONE));
  const enc = new Uint8Array(await crypto.subtle.exportKey("raw", ephemeral.publicKey));
  const shared = await hkdf(
    labelled(KEM, "eae_prk", await exchanged(ephemeral.privateKey, offer.key)),
    NONE,
    joined(Uint8Array.of(0, 32), labelled(KEM, "shared_secret", joined(enc, offer.key))),
    32,
  );
  const context = joined(
    Uint8Array.of(0), // base mode
    await hmac(labelled(HPKE, "psk_id_hash", NONE)),
    await hmac(labelled(HPKE, "info_hash", info)),
  );
  const expand = (name: string, length: number): Promise<Bytes> =>
    hkdf(
      labelled(HPKE, "secret", NONE),
      shared,
      joined(Uint8Array.of(0, length), labelled(HPKE, name, context)),
      length,
    );
  const key = await crypto.subtle.importKey("raw", await expand("key", 16), "AES-GCM", false, [
    "encrypt",
  ]);
  // The nonce is XORed with the sequence number, which is 0.
  const nonce = { name: "AES-GCM", iv: await expand("base_nonce", 12) };
  return joined(enc, new Uint8Array(await crypto.subtle.encrypt(nonce, key, seed)));
}

function labelled(suite: Bytes, label: string, value: Bytes): Bytes {
  return joined(utf8("HPKE-v1"), suite, utf8(label), value);
}

async function hkdf(ikm: Bytes, salt: Bytes, info: Bytes, length: number): Promise<Bytes> {
  const key = await crypto.subtle.importKey("raw", ikm, "HKDF", false, ["deriveBits"]);
  const terms = { name: "HKDF", hash: "SHA-256", salt, info };
  return new Uint8Array(await crypto.subtle.deriveBits(terms, key, 8 * length));
}

/** Return HMAC-SHA256 under a key of zeros: HKDF-Extract without a salt. */
async function hmac(value: Bytes): Promise<Bytes> {
  const name = { name: "HMAC", hash: "SHA-256" };
  const key = await crypto.subtle.importKey("raw", new Uint8Array(32), name, false, ["sign"]);
  return new Uint8Array(await crypto.subtle.sign("HMAC", key, value));
}
