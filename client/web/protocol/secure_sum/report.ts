/**
 * A phone's report in a sum by two operators: its input in two shares. Nothing has to be kept.
 *
 * The helper's share follows from a seed that is sealed to it, the leader's is the rest. Where a sum
 * asks for that, both have a share of a proof as well.
 */

import { UnexpectedMessageError } from "../errors.ts";
import { bytes, map, type Of, optional, whole } from "../fields.ts";
import { sha256 } from "../canonical.ts";
import type { Sharded } from "../prio3/prio3.ts";
import { type Bytes, joined, utf8 } from "../wire.ts";
import { encodeInput, packWords, subtract, type Words, wordsOf } from "./encoding.ts";
import { exchanged, keyPair } from "./exchange.ts";
import { loadProofs, offerDigest, type SendReport } from "./offer.ts";
import { lengthOf, type SumParameters, widthOf } from "./parameters.ts";

const SEED_BYTES = 32;
const ID_BYTES = 16;
/** Random bytes of a proved input: four seeds. */
const PROOF_BYTES = 4 * SEED_BYTES;
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
  sealed: bytes(SEALED_BYTES, SEALED_BYTES + SEED_BYTES),
  share: bytes(0, LARGEST_SHARE),
  public: optional(bytes(0, 4 * SEED_BYTES), NONE),
});

export type PhoneReport = Of<typeof phoneReport>;

/** Randomness of one report. */
export interface Drawn {
  /** Secret bytes: the seed of the helper's share, and of a proved input those of its proof. */
  readonly random: Bytes;
  readonly reportId: Bytes;
  readonly ephemeral: CryptoKeyPair;
}

/** Draw the randomness of one report from the system's generator. */
export async function draw(size = SEED_BYTES): Promise<Drawn> {
  return {
    random: crypto.getRandomValues(new Uint8Array(size)),
    reportId: crypto.getRandomValues(new Uint8Array(ID_BYTES)),
    ephemeral: await keyPair(),
  };
}

/**
 * Return the report of an input under an offer that `refusalsOfOffer` does not refuse.
 *
 * `values` are whole numbers within the bound, row by row. `drawn` is for tests only: a seed that
 * is used twice reveals the difference of two inputs. The secret bytes are erased.
 *
 * Throws `UnexpectedMessageError` if the task has no offer, `InvalidInputError` for an invalid
 * input, `InvalidParametersError` for numbers that describe no input that can be proved, and
 * `MalformedMessageError` for an invalid key of the helper.
 */
export async function makeReport(
  task: SendReport,
  values: ArrayLike<number>,
  drawn?: Drawn,
): Promise<PhoneReport> {
  if (task.offer === null) {
    throw new UnexpectedMessageError("a sum by two operators without an offer");
  }
  const { offer } = task.offer;
  const { parameters } = offer;
  const { proof } = parameters;
  const size = proof === null ? SEED_BYTES : PROOF_BYTES;
  const { random, reportId, ephemeral } = drawn ?? (await draw(size));
  try {
    const digest = await offerDigest(offer);
    let made: Sharded;
    if (proof === null) made = await halves(parameters, values, random);
    else {
      const { provedInput } = await loadProofs();
      made = provedInput(proof, lengthOf(parameters), digest, values, reportId, random);
    }
    const { seed, ...shares } = made;
    const info = joined(digest, reportId, await sha256(shares.public));
    return {
      sum_id: task.sum_id,
      sender: task.index,
      report_id: reportId,
      sealed: await seal(seed, offer.key, info, ephemeral),
      ...shares,
    };
  } finally {
    random.fill(0);
  }
}

/** Split an input that is not proved. */
async function halves(
  parameters: SumParameters,
  values: ArrayLike<number>,
  seed: Bytes,
): Promise<Sharded> {
  const words = encodeInput(values, parameters);
  subtract(words, await helperShare(seed, parameters));
  return { public: NONE, share: packWords(words, widthOf(parameters)), seed };
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
  return wordsOf(parameters, stream);
}

/** Seal a seed to a key by HPKE in base mode, for the report and offer of `info` alone. */
async function seal(
  seed: Bytes,
  key: Bytes,
  info: Bytes,
  ephemeral: CryptoKeyPair,
): Promise<Bytes> {
  const enc = new Uint8Array(await crypto.subtle.exportKey("raw", ephemeral.publicKey));
  const shared = await hkdf(
    labelled(KEM, "eae_prk", await exchanged(ephemeral.privateKey, key)),
    NONE,
    joined(Uint8Array.of(0, 32), labelled(KEM, "shared_secret", joined(enc, key))),
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
  const raw = await expand("key", 16);
  const sealing = await crypto.subtle.importKey("raw", raw, "AES-GCM", false, ["encrypt"]);
  // The nonce is XORed with the sequence number, which is 0.
  const nonce = { name: "AES-GCM", iv: await expand("base_nonce", 12) };
  return joined(enc, new Uint8Array(await crypto.subtle.encrypt(nonce, sealing, seed)));
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
