/**
 * The encoder file: a TensorFlow Lite model in front, an archive with its card behind.
 *
 * The archive is a ZIP file whose card is not compressed.
 */

import { sha256 } from "../protocol/canonical.ts";
import { LocalError } from "../protocol/errors.ts";
import { type Bytes, hex } from "../protocol/wire.ts";

/** Length of every embedding. */
export const DIMENSIONS = 128;
/** Largest size of an encoder file that is read, in bytes. */
export const MOST_BYTES = 16 * 2 ** 20;

const FORMAT = 1;
const LARGEST_NAME = 64;
const CARD = "encoder.json";
/** Samples per second of each spectrum that this phone computes, by its name on cards. */
const RATES: ReadonlyMap<unknown, number> = new Map(
  [8000, 16_000].map((rate) => [`log-mel 61x64 at ${rate / 1000} kHz, unit rms`, rate]),
);

/** A damaged or unusable encoder file; the message says what is wrong. */
export class DamagedEncoderError extends LocalError {
  override name = "DamagedEncoderError";
}

/** Checked content of an encoder file. */
export interface EncoderFile {
  /** Name of the encoder; embeddings of two encoders do not compare. */
  readonly name: string;
  readonly model: Bytes;
  /** Samples per second of the spectrum that the network is given. */
  readonly rate: number;
  /** Mean of each of the 128 coordinates over public sound. */
  readonly mean: Float32Array;
  /** Scale of each coordinate of the projection. */
  readonly scale: Float32Array;
}

/**
 * Read and check an encoder file.
 *
 * Throws `DamagedEncoderError`: the data are not an encoder file, of another format, or altered.
 */
export async function readEncoderFile(data: Bytes): Promise<EncoderFile> {
  if (data.length > MOST_BYTES) {
    throw new DamagedEncoderError(
      `an encoder file has at most ${MOST_BYTES / 2 ** 20} MiB, this one has ${data.length} bytes`,
    );
  }
  const card = parse(entry(data, CARD));
  const { format, name, features, length, mean, scale } = card;
  if (format !== FORMAT) {
    throw new DamagedEncoderError(
      `the encoder file has format ${shown(format)}; this version reads format ${FORMAT}`,
    );
  }
  if (typeof name !== "string" || !new RegExp(`^[^\\p{C}]{1,${LARGEST_NAME}}$`, "u").test(name)) {
    throw new DamagedEncoderError(
      `the encoder's card must hold a name of 1 to ${LARGEST_NAME} printable characters`,
    );
  }
  const rate = RATES.get(features);
  if (rate === undefined) {
    throw new DamagedEncoderError(
      `encoder '${name}' hears ${shown(features)}; this version computes ` +
        [...RATES.keys()].map(shown).join(" and "),
    );
  }
  if (card.dimensions !== DIMENSIONS || !numbers(mean) || !numbers(scale)) {
    throw new DamagedEncoderError(
      `the card of encoder '${name}' must have ${DIMENSIONS} dimensions, and as many finite ` +
        "numbers in mean and scale",
    );
  }
  const model = data.subarray(0, typeof length === "number" && length > 0 ? length : 0);
  if (model.length !== length || hex(await sha256(model)) !== card["sha256"]) {
    throw new DamagedEncoderError(
      `the model of encoder '${name}' is not the one that its card describes: get the file again`,
    );
  }
  return {
    name,
    model,
    rate,
    mean: Float32Array.from(mean),
    scale: Float32Array.from(scale),
  };
}

function parse(card: Uint8Array): { readonly [field: string]: unknown } {
  let parsed: unknown;
  try {
    parsed = JSON.parse(new TextDecoder("utf-8", { fatal: true }).decode(card));
  } catch (error) {
    throw new DamagedEncoderError(`the encoder file's ${CARD} cannot be read: ${error}`);
  }
  if (!isRecord(parsed)) throw new DamagedEncoderError(`the encoder file's ${CARD} is not a map`);
  return parsed;
}

/**
 * Return the bytes of an entry of the ZIP archive that ends a file (APPNOTE.TXT, 4.3 and 4.4).
 *
 * Throws `DamagedEncoderError`: there is no archive, or the entry is missing, packed or cut short.
 */
function entry(data: Uint8Array, name: string): Uint8Array {
  const view = new DataView(data.buffer, data.byteOffset, data.byteLength);
  const signed = (at: number, size: number, signature: number): boolean =>
    at >= 0 && at + size <= data.length && view.getUint32(at, true) === signature;
  // The end record has 22 bytes; encoder files have no archive comment after it.
  const end = data.length - 22;
  if (!signed(end, 22, 0x06054b50)) {
    throw new DamagedEncoderError(
      `not an encoder file: it must be a model with an archive of ${CARD} behind it`,
    );
  }
  let at = view.getUint32(end + 16, true);
  for (let left = view.getUint16(end + 10, true); left > 0 && signed(at, 46, 0x02014b50); left--) {
    const nameEnd = at + 46 + view.getUint16(at + 28, true);
    const packed = view.getUint16(at + 10, true) !== 0;
    const size = view.getUint32(at + 20, true);
    const header = view.getUint32(at + 42, true);
    if (String.fromCharCode(...data.subarray(at + 46, nameEnd)) === name) {
      if (packed || !signed(header, 30, 0x04034b50)) break;
      const lengths = view.getUint16(header + 26, true) + view.getUint16(header + 28, true);
      const start = header + 30 + lengths;
      if (start + size > data.length) break;
      return data.subarray(start, start + size);
    }
    at = nameEnd + view.getUint16(at + 30, true) + view.getUint16(at + 32, true);
  }
  throw new DamagedEncoderError(`the encoder file must hold ${name}, whole and not compressed`);
}

function numbers(given: unknown): given is number[] {
  return (
    Array.isArray(given) &&
    given.length === DIMENSIONS &&
    given.every((each) => Number.isFinite(each))
  );
}

function isRecord(given: unknown): given is { readonly [field: string]: unknown } {
  return typeof given === "object" && given !== null && !Array.isArray(given);
}

function shown(given: unknown): string {
  return JSON.stringify(given)?.slice(0, 100) ?? "nothing";
}
